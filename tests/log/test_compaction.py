"""Which records survive a cleaning, and in which bytes: the golden set `compacted` is the measure."""

import random
import struct
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from kohort.log.compaction import Aborted, Compaction, LastRecord, OffsetMap, Rules
from kohort.log.txn_index import AbortedTransaction
from kohort.records.batch import Record, RecordBatch, read_batch, read_batches, stamp
from kohort.records.compression import Codec, compress
from tests.log.folding import TIME, Entry, fold_bytes, marker, plain, transactional

GOLDEN = Path(__file__).parent.parent / "golden"
DAY = 86_400_000


def _log(*batches: bytes) -> bytes:
    """A log of these batches, numbered."""
    out, offset = bytearray(), 0
    for batch in map(bytearray, batches):
        stamp(batch, base_offset=offset, partition_leader_epoch=0)
        offset = read_batch(bytes(batch)).header.next_offset
        out += batch
    return bytes(out)


def _clean(
    log: bytes,
    *,
    now: int = TIME,
    first_dirty: int = 0,
    memory: int = 1 << 20,
    aborted: Iterable[AbortedTransaction] = (),
    last_records: dict[int, LastRecord] | None = None,
) -> bytes:
    spans = Aborted(aborted)
    latest = OffsetMap(memory, first_dirty)
    for batch in read_batches(log):
        if batch.header.last_offset >= first_dirty and not latest.put_batch(
            batch, aborted=spans.contains(batch.header)
        ):
            break
    rules = Rules(latest=latest, aborted=spans, last_records=last_records or {}, now_ms=now, delete_retention_ms=DAY)
    compaction = Compaction(rules)
    return b"".join(compaction.clean(batch.header, log) for batch in read_batches(log))


def _kept(log: bytes) -> list[tuple[int, list[int]]]:
    """The offset of each batch with those of the records left in it."""
    return [(batch.header.base_offset, [record.offset for record in batch.records]) for batch in read_batches(log)]


def _golden_batches() -> list[tuple[RecordBatch, bytes]]:
    found = []
    for path in sorted(GOLDEN.glob("compacted/*/*.log")):
        data = path.read_bytes()
        found += [(batch, data[batch.header.position : batch.header.end]) for batch in read_batches(data)]
    return found


def test_the_last_record_of_each_key_stays_and_its_batch_keeps_its_offsets() -> None:
    log = _log(
        plain([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]), plain([(b"b", b"2")]), plain([(b"c", b"2"), (b"c", b"3")])
    )
    cleaned = _clean(log)
    assert _kept(cleaned) == [(0, [0]), (3, [3]), (4, [5])]
    assert [batch.header.last_offset for batch in read_batches(cleaned)] == [2, 3, 5]
    assert fold_bytes(cleaned) == fold_bytes(log)


def test_a_batch_that_loses_nothing_stays_byte_for_byte() -> None:
    log = _log(
        plain([(b"a", b"1")], codec=Codec.GZIP),
        plain([(b"b", b"1")]),
        transactional(7, [(b"c", b"1")]),
        marker(7, commit=True),
    )
    assert _clean(log) == log


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_loses_records_is_compressed_as_it_was(codec: Codec) -> None:
    log = _log(plain([(b"a", b"1" * 100), (b"b", b"2" * 100)], codec=codec), plain([(b"a", b"3")]))
    first = next(read_batches(_clean(log)))
    assert (first.header.codec, [record.value for record in first.records]) == (codec, [b"2" * 100])


def test_records_without_a_key_go() -> None:
    log = _log(plain([(None, b"1"), (b"a", b"1")]), plain([(None, b"2")]))
    assert _kept(_clean(log)) == [(0, [1])]


def test_a_tombstone_goes_a_retention_time_after_the_first_cleaning_that_met_it() -> None:
    log = _log(plain([(b"a", b"1")]), plain([(b"a", None), (b"b", b"1")]))
    once = _clean(log)
    [tombstone] = read_batches(once)
    assert (tombstone.header.delete_horizon, tombstone.header.max_timestamp) == (TIME + DAY, TIME)
    assert [record.timestamp for record in tombstone.records] == [TIME, TIME]
    assert _clean(once, now=TIME + DAY - 1) == once
    later = _clean(once, now=TIME + DAY)
    assert _kept(later) == [(1, [2])]
    assert fold_bytes(later) == fold_bytes(log)


def test_a_tombstone_below_the_dirty_part_gets_no_horizon_as_nobody_looked_for_what_it_hides() -> None:
    log = _log(plain([(b"a", b"1")]), plain([(b"a", None)]), plain([(b"b", b"1")]))
    assert _clean(log, first_dirty=2) == log


def test_nothing_behind_the_full_map_is_touched() -> None:
    log = _log(plain([(b"a", b"1")]), plain([(b"a", b"2")]), plain([(b"b", None)]), plain([(b"a", b"3")]))
    one_key = 200
    assert _kept(_clean(log, memory=one_key)) == [(1, [1]), (2, [2]), (3, [3])]


def test_data_of_an_aborted_transaction_goes_at_once_and_its_marker_after_it() -> None:
    log = _log(plain([(b"a", b"1")]), transactional(7, [(b"a", b"2"), (b"b", b"2")]), marker(7, commit=False))
    aborted = [AbortedTransaction(7, 1, 3, 1)]
    once = _clean(log, aborted=aborted)
    assert _kept(once) == [(0, [0]), (3, [3])]
    assert list(read_batches(once))[1].header.delete_horizon is None
    twice = _clean(once, aborted=aborted)
    assert list(read_batches(twice))[1].header.delete_horizon == TIME + DAY
    assert _kept(_clean(twice, now=TIME + DAY)) == [(0, [0])]


def test_a_marker_stays_while_a_batch_of_its_transaction_does() -> None:
    log = _log(transactional(7, [(b"a", b"1")]), plain([(b"b", b"1")]), marker(7, commit=True))
    assert _clean(_clean(log), now=TIME + 2 * DAY) == log


def test_a_marker_goes_even_if_an_older_transaction_of_its_producer_has_data_left() -> None:
    log = _log(transactional(7, [(b"a", b"1")]), marker(7, commit=True), marker(7, commit=True))
    assert [batch.header.delete_horizon for batch in read_batches(_clean(log))] == [None, None, TIME + DAY]


def test_a_marker_does_not_answer_for_another_producer_s_data() -> None:
    log = _log(transactional(7, [(b"a", b"1")]), marker(8, commit=True), marker(7, commit=True))
    cleaned = [batch.header.delete_horizon for batch in read_batches(_clean(log))]
    assert cleaned == [None, TIME + DAY, None]


def test_an_aborted_transaction_of_a_producer_says_nothing_about_its_others() -> None:
    log = _log(
        transactional(7, [(b"a", b"1")]),
        marker(7, commit=True),
        transactional(7, [(b"a", b"2")]),
        marker(7, commit=False),
        transactional(7, [(b"b", b"3")]),
        marker(7, commit=True),
    )
    cleaned = _clean(log, aborted=[AbortedTransaction(7, 2, 3, 2)])
    assert _kept(cleaned) == [(0, [0]), (1, [1]), (3, [3]), (4, [4]), (5, [5])]
    assert fold_bytes(cleaned) == fold_bytes(log)


def test_the_last_batch_of_a_living_producer_stays_without_its_records() -> None:
    log = _log(transactional(7, [(b"a", b"1")], codec=Codec.GZIP), marker(7, commit=True), plain([(b"a", b"2")]))
    last = {7: LastRecord(0, 0)}
    once = _clean(log, last_records=last)
    empty, end = list(read_batches(once))[:2]
    assert (empty.header.size, empty.header.attributes, empty.header.base_timestamp) == (61, 0x10, -1)
    assert (empty.header.max_timestamp, empty.header.last_sequence, empty.header.last_offset) == (TIME, 0, 0)
    assert _clean(once, last_records=last, now=TIME + 2 * DAY) == once, "and its marker with it"
    assert end.header.is_control
    assert _kept(_clean(once)) == [(1, [1]), (2, [2])], "until the producer is forgotten"


def test_a_marker_that_is_the_last_of_its_producer_stays_without_its_record() -> None:
    log = _log(plain([(b"a", b"1")]), marker(7, commit=True))
    last = {7: LastRecord(None, 0)}
    once = _clean(log, last_records=last)
    gone = _clean(once, last_records=last, now=TIME + DAY)
    assert _kept(gone) == [(0, [0]), (1, [])]
    assert _clean(gone, last_records=last, now=TIME + DAY) == gone
    assert _kept(_clean(gone, last_records={7: LastRecord(None, 1)})) == [(0, [0])]


def _message(offset: int, key: bytes | None, value: bytes, codec: Codec = Codec.NONE) -> bytes:
    """A message of format 1."""
    body = struct.pack(">bbq", 1, codec, TIME)
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def test_a_compressed_message_of_format_1_is_kept_whole_and_so_are_the_tombstones_of_what_is_in_it() -> None:
    inner = _message(0, b"a", b"1") + _message(1, b"b", b"1")
    wrapper = _message(1, None, compress(Codec.GZIP, inner), Codec.GZIP)
    tombstone = bytearray(plain([(b"a", None), (b"c", None)]))
    stamp(tombstone, base_offset=2, partition_leader_epoch=0)
    log = cleaned = wrapper + bytes(tombstone)
    for days in range(3):
        cleaned = _clean(cleaned, now=TIME + days * DAY, first_dirty=0 if days == 0 else 4)
        assert cleaned.startswith(wrapper)
        assert fold_bytes(cleaned) == fold_bytes(log)
    assert _kept(cleaned) == [(1, [0, 1]), (2, [2])]
    later = bytearray(plain([(b"b", b"2")]))
    stamp(later, base_offset=4, partition_leader_epoch=0)
    assert _kept(_clean(cleaned + later, now=TIME + 3 * DAY)) == [(4, [4])]


def test_messages_of_format_1_are_kept_one_by_one() -> None:
    data = next(GOLDEN.glob("kafka-2.6.3-ibp-0.10.0/__consumer_offsets-0/*.log")).read_bytes()
    cleaned = _clean(data)
    assert len(cleaned) < len(data)
    originals = {data[batch.header.position : batch.header.end] for batch in read_batches(data)}
    for batch in read_batches(cleaned):
        assert cleaned[batch.header.position : batch.header.end] in originals
    assert fold_bytes(cleaned) == fold_bytes(data)
    assert _clean(cleaned) == cleaned


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*/__consumer_offsets-[0-3]/*.log")), ids=lambda path: "/".join(path.parts[-3:])
)
def test_a_cleaned_golden_segment_reads_as_before(path: Path) -> None:
    data = path.read_bytes()
    batches = list(read_batches(data))
    open_from = min(
        (batch.header.base_offset for batch in batches if batch.header.producer_id in fold_bytes(data).pending),
        default=1 << 62,
    )
    stable = b"".join(data[b.header.position : b.header.end] for b in batches if b.header.base_offset < open_from)
    aborted, started = [], {}
    for header, records in ((batch.header, batch.records) for batch in read_batches(stable)):
        if header.is_control:
            first = started.pop(header.producer_id, None)
            if first is not None and records[0].key == b"\0\0\0\0":
                aborted.append(AbortedTransaction(header.producer_id, first, header.last_offset, first))
        elif header.is_transactional:
            started.setdefault(header.producer_id, header.base_offset)
    cleaned = stable
    for days in range(4):
        cleaned = _clean(cleaned, now=TIME * 2 + days * DAY, aborted=aborted)
        assert fold_bytes(cleaned) == fold_bytes(stable)
    kept = [record for batch in read_batches(cleaned) if batch.header.magic == 2 for record in batch.records]
    assert all(record.value is not None for record in kept)


def test_tombstone_batches_come_out_as_kafka_s() -> None:
    golden = [found for found in _golden_batches() if found[0].header.delete_horizon is not None]
    assert len(golden) == 5
    for batch, data in golden:
        horizon = batch.header.base_timestamp
        plain_header = replace(batch.header, attributes=0, base_timestamp=batch.header.max_timestamp)
        before = RecordBatch(plain_header, batch.records).encode()
        assert _clean(before, now=horizon - DAY) == data


def test_emptied_batches_come_out_as_kafka_s() -> None:
    golden = [found for found in _golden_batches() if not found[0].records]
    assert len(golden) == 4
    for batch, data in golden:
        header = batch.header
        record = Record(header.last_offset, header.max_timestamp, b"k", b"v")
        before = RecordBatch(replace(header, base_timestamp=header.max_timestamp), (record,)).encode()
        later = RecordBatch.build([Record(header.next_offset, TIME, b"k", b"w")]).encode()
        cleaned = _clean(before + later, last_records={header.producer_id: LastRecord(header.last_offset, 0)})
        assert cleaned == data + later


def test_thinned_batches_come_out_as_kafka_s() -> None:
    golden = [found for found in _golden_batches() if 0 < len(found[0].records) <= found[0].header.last_offset_delta]
    assert golden
    for batch, data in golden:
        header = batch.header
        taken = {record.offset for record in batch.records}
        lost = [
            Record(offset, header.max_timestamp, b"k%d" % offset, b"v")
            for offset in range(header.base_offset, header.next_offset)
            if offset not in taken
        ]
        entries: list[Entry] = [(record.key, b"w") for record in lost]
        before = RecordBatch(header, tuple(sorted((*batch.records, *lost)))).encode()
        later = bytearray(plain(entries))
        stamp(later, base_offset=header.next_offset, partition_leader_epoch=0)
        assert _clean(before + later) == data + later


def test_finding_what_is_left_of_a_batch_is_not_taken_for_a_bomb() -> None:
    """A value of zeros is let in beside noise. Alone it shrinks to less than a thousandth, which is never read again:
    a cleaning that dropped the noise left a log that could not be loaded."""
    noise, zeros = random.Random(1).randbytes(3_000), bytes(900_000)
    log = _log(plain([(b"a", noise), (b"b", zeros)], codec=Codec.ZSTD), plain([(b"a", None)]))
    cleaned = _clean(log)
    assert [record.value for batch in read_batches(cleaned) for record in batch.records] == [zeros, None]
    assert fold_bytes(cleaned) == fold_bytes(log)
