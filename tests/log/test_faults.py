"""The disk fails at the n-th call, for every n: once or for good, with an error or because it is full."""

import errno
from dataclasses import replace

import pytest

from kohort.config import LogConfig
from kohort.errors import KohortError
from kohort.log.crash_images import Disk
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.simulated_files import Image
from tests.log.crash_judgement import judge
from tests.log.crash_site import CONFIG, DATA, MAIN, NOTHING, Ledger, Site, Step
from tests.log.folding import marker, plain, transactional
from tests.log.tally import Tally

FAULTS = {
    "an error": Fault(call=0, number=errno.EIO),
    "errors from then on": Fault(call=0, number=errno.EIO, persistent=True),
    "a write cut short": Fault(call=0, number=errno.EIO, short_write=20),
    "a full disk for a moment": Fault(call=0, number=errno.ENOSPC, short_write=20),
    "a full disk": Fault(call=0, number=errno.ENOSPC, short_write=20, persistent=True),
}


def _put(key: bytes, value: bytes | None = b"1") -> Step:
    return lambda site: site.append(plain([(key, value)]))


WORK: list[Step] = [
    Site.create,
    _put(b"a"),
    Site.flush,
    lambda site: site.append(transactional(7, [(b"b", b"1")])),
    _put(b"a", b"2"),
    Site.flush,
    lambda site: site.log.roll(),
    lambda site: site.append(marker(7, commit=False)),
    _put(b"c"),
    Site.flush,
    lambda site: site.log.roll(),
    _put(b"c", b"2"),
    Site.flush,
    Site.clean,
    lambda site: site.directory.checkpoint(),
    _put(b"d"),
    Site.flush,
    Site.close,
]
RETENTION: list[Step] = [
    Site.create,
    *(_put(key) for key in (b"a", b"b", b"c", b"d", b"e")),
    Site.flush,
    Site.retain,
    _put(b"f"),
    Site.flush,
    lambda site: site.clock.advance(5000),
    Site.retain,
    Site.delete,
    lambda site: site.clock.advance(5000),
    lambda site: site.directory.tick(),
    Site.close,
]
DELETING = replace(CONFIG, cleanup_policy=frozenset({"delete"}), retention_bytes=200, segment_bytes=150)
HISTORIES = {"appends and cleans": (CONFIG, WORK), "retention and deletion": (DELETING, RETENTION)}


def _run(steps: list[Step], fault: Fault | None, config: LogConfig, image: Image = NOTHING) -> tuple[Site, FaultyFiles]:
    """Start and do the work, whatever fails; once a sync has failed, nothing more may be acknowledged."""
    site = Site(image, config)
    faulty = FaultyFiles(site.recording, fault)
    site.files = faulty
    acknowledged: int | None = None
    for step in [Site.start, *steps]:
        try:
            step(site)
        except KohortError:
            if step in (Site.start, Site.create):
                break
        if acknowledged is None and any(_is_log_sync(failed) for failed in faulty.failed):
            acknowledged = len(site.ledger.acknowledged)
        if acknowledged is not None:
            assert len(site.ledger.acknowledged) == acknowledged, "acknowledged after a sync had failed"
    return site, faulty


def _is_log_sync(failed: str) -> bool:
    return failed.startswith(f"sync {DATA}/{MAIN}/") and failed.endswith(".log")


def _images(site: Site) -> list[Image]:
    """What may be found afterwards: the process was killed, or the power went."""
    disk = Disk(site.start_image)
    for operation in site.recording.operations:
        disk.apply(operation)
    return [site.disk.image(), *disk.images(6)]


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_acknowledged_is_lost_whichever_call_fails(name: str, kind: str, tally: Tally) -> None:
    config, steps = HISTORIES[name]
    _, counting = _run(steps, None, config)
    assert not counting.failed
    for call in range(counting.calls):
        site, faulty = _run(steps, replace(FAULTS[kind], call=call), config)
        assert faulty.failed
        for image in _images(site):
            tally.count(1)
            problems = judge(image, site.ledger.expected(site.operations), config).problems
            assert problems == [], (call, faulty.failed[0])


@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_is_lost_whichever_call_of_a_start_fails(kind: str, tally: Tally) -> None:
    before = Site().run([Site.start, *WORK[:-4]])
    before.append(plain([(b"e", b"1")]))
    image = before.disk.image()
    expected = before.ledger.expected(before.operations)
    _, counting = _run([], None, CONFIG, image)
    for call in range(counting.calls):
        site, faulty = _run([], replace(FAULTS[kind], call=call), CONFIG, image)
        assert faulty.failed
        for found in _images(site):
            tally.count(1)
            problems = judge(found, expected).problems
            assert problems == [], (call, faulty.failed[0])


def test_a_ledger_promises_only_what_was_acknowledged() -> None:
    assert Ledger().expected(0).promised_end == 0
    site, _ = _run(WORK, None, CONFIG)
    ends = [site.ledger.expected(operations).promised_end for operations in range(site.operations + 1)]
    assert ends == sorted(ends)
    assert ends[-1] == 7
