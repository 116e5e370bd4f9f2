"""Bits that flip on the disk: below what was synced that is refused and left alone, behind it it is cut."""

import pytest

from kohort.clock import VirtualClock
from kohort.errors import CorruptLog
from kohort.log.directory import LogDirectory
from kohort.log.simulated_files import Image, SimulatedFiles
from kohort.records.batch import read_batches
from tests.log.crash_judgement import judge, read_log
from tests.log.crash_site import CONFIG, DATA, MAIN, Site, open_directory
from tests.log.folding import TIME, marker, plain, transactional
from tests.log.tally import Tally

LOG = f"{DATA}/{MAIN}/00000000000000000000.log"


def _site() -> Site:
    """Three synced batches and two that are not, after a kill: everything written is there."""
    site = Site()
    site.start()
    site.create()
    for batch in (plain([(b"a", b"1")]), transactional(7, [(b"b", b"1")]), marker(7, commit=True)):
        site.append(batch)
    site.flush()
    site.append(plain([(b"c", b"1")]))
    site.append(plain([(b"d", b"1")]))
    return site


def _content(image: Image, path: str) -> bytes:
    content = image[path]
    assert content is not None
    return content


def _flipped(image: Image, path: str, position: int, bit: int = 0) -> Image:
    content = bytearray(_content(image, path))
    content[position] ^= 1 << bit
    return {**image, path: bytes(content)}


def _open(image: Image) -> tuple[LogDirectory, SimulatedFiles]:
    disk = SimulatedFiles(image)
    return open_directory(disk, VirtualClock(TIME), CONFIG), disk


def _partition(image: Image) -> Image:
    return {path: content for path, content in image.items() if path.startswith(f"{DATA}/{MAIN}/")}


def _covered(data: bytes) -> list[tuple[int, int, int]]:
    """Each byte that a batch's checksum or frame answers for, with the start and the number of the batch.

    The base offset and the leader epoch stand outside of the checksum in Kafka's format.
    """
    return [
        (position, batch.header.position, number)
        for number, batch in enumerate(read_batches(data))
        for position in range(batch.header.position + 8, batch.header.end)
        if not 12 <= position - batch.header.position < 16
    ]


@pytest.mark.parametrize("bit", [0, 7])
def test_a_flipped_bit_in_what_was_synced_is_refused_and_one_behind_it_is_cut(bit: int, tally: Tally) -> None:
    image = _site().disk.image()
    data = _content(image, LOG)
    starts = [batch.header.position for batch in read_batches(data)]
    for position, start, number in _covered(data):
        tally.count(1)
        damaged = _flipped(image, LOG, position, bit)
        directory, disk = _open(damaged)
        if number < 3:
            failure = directory.failed[MAIN]
            assert isinstance(failure, CorruptLog)
            assert (failure.path, failure.position) == (LOG, start)
            assert _partition(disk.image()) == _partition(damaged)
        else:
            log = directory.logs[MAIN]
            assert _content(disk.image(), LOG) == data[: starts[number]]
            assert (log.log_end_offset, log.cut_bytes) == (number, len(data) - starts[number])


def test_a_flipped_bit_in_an_older_segment_is_never_cut(tally: Tally) -> None:
    site = _site()
    site.flush()
    site.log.roll()
    site.append(plain([(b"e", b"1")]))
    site.flush()
    site.directory.checkpoint()
    image = site.disk.image()
    for position, _, _ in _covered(_content(image, LOG)):
        tally.count(1)
        damaged = _flipped(image, LOG, position)
        directory, disk = _open(damaged)
        assert disk.image()[LOG] == damaged[LOG]
        if MAIN in directory.logs:
            with pytest.raises(CorruptLog):
                read_log(directory.logs[MAIN])


def test_a_log_that_lost_its_synced_end_is_refused(tally: Tally) -> None:
    site = _site()
    synced_end = [batch.header.position for batch in read_batches(_content(site.disk.image(), LOG))][3]
    image = site.disk.image()
    for size in range(len(_content(image, LOG))):
        tally.count(1)
        cut = {**image, LOG: _content(image, LOG)[:size]}
        directory, disk = _open(cut)
        if size < synced_end:
            assert isinstance(directory.failed[MAIN], CorruptLog)
            assert _partition(disk.image()) == _partition(cut)
        else:
            assert directory.logs[MAIN].log_end_offset >= 3


def test_flips_in_what_can_be_made_again_do_no_harm(tally: Tally) -> None:
    """Snapshots, notes, checkpoints, and indexes too, which have no checksum: it costs work, but misleads nobody."""
    site = _site()
    site.flush()
    site.log.roll()
    site.append(transactional(8, [(b"e", b"1")]))
    site.append(marker(8, commit=False))
    site.flush()
    site.directory.checkpoint()
    image = site.disk.image()
    expected = site.ledger.expected(site.operations)
    for path, content in image.items():
        if content is None or path.endswith((".log", "meta.properties")):
            continue
        for position in range(len(content)):
            tally.count(1)
            problems = judge(_flipped(image, path, position, 1), expected).problems
            assert all("was refused" in problem for problem in problems), (path, position, problems)
