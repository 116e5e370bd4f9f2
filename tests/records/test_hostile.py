"""Logs that mean harm: they cost a reader time and memory in proportion, and never end a load."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kohort.records import columns as columns_module
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.columns import decode
from kohort.records.compression import Codec
from kohort.records.finish import finish
from kohort.records.key_table import KeyTable
from kohort.records.replay import Piece, Rule
from tests.records.legacy import message, wrapper
from tests.records.peak_memory import PEAK_MIB
from tests.records.pieces import array, merged, outcome, piece_of
from tests.records.test_damage import with_body


def commit(raw_group: bytes, offset: int, *, timestamp: int = 0, codec: Codec = Codec.NONE) -> bytes:
    key = b"\x00\x01" + len(raw_group).to_bytes(2, "big") + raw_group + b"\x00\x01t\x00\x00\x00\x00"
    value = b"\x00\x03" + offset.to_bytes(8, "big") + b"\xff\xff\xff\xff\x00\x00" + bytes(8)
    return RecordBatch.build([Record(offset, timestamp, key, value)], codec=codec).encode()


def test_a_group_id_that_grows_when_it_is_mended_is_one_group() -> None:
    """Each bad byte is mended to three: the plain form of such a key could not even be written."""
    bad = commit(b"\xff" * 20_000, 1) + commit(b"\xfe" * 20_000, 2)
    for piece in (
        piece_of(bad, Rule.POSITION),
        merged([piece_of(bad, Rule.POSITION), piece_of(bad, Rule.POSITION)], []),
    ):
        state = finish([piece])
        assert [(len(key.group), committed.value.offset) for key, committed in state.offsets.items()] == [(20_000, 2)]


def test_the_same_key_of_a_newer_record_with_bytes_behind_it_is_the_same() -> None:
    key = b"\x00\x03\x00\x01g"
    put = RecordBatch.build([Record(0, 0, key, b"\x00\x00\x00\x00\x00\x05\x00")]).encode()
    gone = RecordBatch.build([Record(1, 0, key + b"!", None)]).encode()
    assert finish([piece_of(put, Rule.POSITION)]).groups.keys() == {"g"}
    assert finish([piece_of(put + gone, Rule.POSITION)]).groups == {}
    halves = [piece_of(put, Rule.POSITION), piece_of(gone, Rule.POSITION)]
    assert finish([merged(halves, [])]).groups == {}


def test_wrapped_offsets_too_far_apart_are_damage_and_wide_times_are_kept() -> None:
    far = message(0, b"a", b"b", magic=0) + message(1 << 40, b"a", b"b", magic=0)
    data = message(1 << 40, None, _gzip(far), magic=0, attributes=1)
    damage: list[object] = []
    assert not list(read_batches(data, on_damage=damage.append))
    assert len(damage) == 1
    wide = message(0, b"a", b"b", timestamp=-(1 << 63)) + message(1, b"a", b"b", timestamp=(1 << 63) - 1)
    data = message(1, None, _gzip(wide), attributes=1)
    times = [record.timestamp for batch in read_batches(data) for record in batch.records]
    assert decode(array(data), KeyTable()).columns.timestamps.tolist() == times == [-(1 << 63), (1 << 63) - 1]
    assert wrapper([(b"a", b"b")], 0, Codec.GZIP)


def _gzip(data: bytes) -> bytes:
    from kohort.records.compression import compress

    return compress(Codec.GZIP, data)


@pytest.mark.parametrize("damaged", [with_body(b"\x7e" + bytes(7)), with_body(b"no gzip", codec=Codec.GZIP)])
def test_a_damaged_batch_still_counts_for_the_time(damaged: bytes) -> None:
    late = bytearray(damaged)
    late[35:43] = (5000).to_bytes(8, "big")
    from tests.records.test_damage import checksummed

    data = commit(b"g", 1, timestamp=1000) + checksummed(late) + commit(b"g", 9, timestamp=1000)
    columns = decode(array(data), KeyTable(), on_damage=lambda _: None).columns
    kept, ended = columns.until(2000)
    assert (kept.offsets.tolist(), ended) == ([1], True)


def test_a_window_of_compressed_batches_is_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_MOST_DECOMPRESSED", 100)
    data = b"".join(commit(b"g", n, codec=Codec.GZIP) for n in range(20)) + b"torn"
    offsets: list[int] = []
    damage: list[int] = []
    piece, rest, at = Piece(Rule.POSITION), data, 0
    while rest:
        window = decode(array(rest), piece.keys, on_damage=lambda d, at=at: damage.append(at + d.position))
        offsets += window.columns.offsets.tolist()
        piece.append(window.columns)
        rest, at = rest[window.consumed :], at + window.consumed
    assert offsets == list(range(20))
    assert damage == [len(data) - 4]
    assert outcome(piece).offsets.keys() == {("g", "t", 0)}


def test_hostile_files_take_no_memory_from_the_columns(tmp_path: Path) -> None:
    """Batches that claim or hold as much as they may, read by `state`'s own code in a process of its own."""
    from kohort.records.compression import compress

    zeros = compress(Codec.ZSTD, bytes(60 * 1024 * 1024))
    (tmp_path / "claims.log").write_bytes(with_body(zeros, count=8_000_000, codec=Codec.ZSTD))
    (tmp_path / "plain.log").write_bytes(with_body(bytes(20 * 1024 * 1024), count=2_900_000))
    (tmp_path / "many.log").write_bytes(b"".join(with_body(zeros, codec=Codec.ZSTD) for _ in range(30)))
    script = f"""{PEAK_MIB}
import sys
from kohort.log.source import replay_partition
from kohort.log.stored import find_partitions
from kohort.records.replay import Rule
told = []
for path in sys.argv[1:]:
    for partition in find_partitions(path, "t"):
        replay_partition(partition, Rule.POSITION, told.append, lambda _: None)
print(len(told), peak_mib())
"""
    paths = [str(path) for path in sorted(tmp_path.iterdir())]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)
    told, most_mib = map(int, done.stdout.split())
    assert told == 32
    assert most_mib < 600


def test_a_table_takes_keys_as_they_come_not_as_they_are_claimed() -> None:
    table = KeyTable()
    decode(array(with_body(bytes(7 * 100_000), count=100_000)), table, on_damage=lambda _: None)
    assert table.size == 0
    assert len(table._hashes) == 1 << 11
    raw = np.frombuffer(b"k" * 300_000, np.uint8)
    assert table.intern_all(raw, np.array([0, 299_999, 300_000])).tolist() == [0, 1]
