"""Batches for the copy: the same records, numbered without holes, and the same batches whoever begins again."""

import random
from dataclasses import replace

import pytest

from kohort.migration.packing import PRODUCER_ID, Outgoing, Packer
from kohort.migration.source import Fate, SourceBatch
from kohort.records.batch import Record, RecordBatch, read_batch, read_header, read_records
from kohort.records.compression import Codec
from tests.migration.random_logs import NOW_MS, random_log


def source_batches(seed: int) -> list[SourceBatch]:
    return [SourceBatch(read_header(data), data, Fate.DATA) for _, data in random_log(seed).batches]


def packed(batches: list[SourceBatch], first_offset: int = 0, skip: int = 0) -> list[Outgoing]:
    """Without the first records of the first batch, if so many are to be skipped."""
    packer, found = Packer(first_offset), []
    for batch in batches:
        found += packer.add(batch, read_records(batch.header, batch.data)[skip:])
        skip = 0
    return [*found, *packer.flush()]


@pytest.mark.parametrize("seed", range(30))
def test_records_come_out_as_they_went_in_without_holes(seed: int) -> None:
    batches = source_batches(seed)
    records = [record for batch in batches for record in read_records(batch.header, batch.data)]
    next_offset, found = 0, list[Record]()
    for outgoing in packed(batches):
        batch = read_batch(outgoing.data)
        assert outgoing.first_offset == next_offset == batch.header.base_sequence
        assert batch.header.base_offset == 0
        assert batch.header.last_offset_delta == outgoing.record_count - 1 == len(batch.records) - 1
        assert (batch.header.producer_id, batch.header.producer_epoch) == (PRODUCER_ID, 0)
        assert not batch.header.attributes & ~7
        found += (record._replace(offset=record.offset + next_offset) for record in batch.records)
        next_offset = outgoing.next_offset
    assert [record.offset for record in found] == list(range(len(records)))
    assert [record[1:] for record in found] == [record[1:] for record in records]


@pytest.mark.parametrize("seed", range(10))
def test_who_begins_again_behind_any_batch_makes_the_same_ones(seed: int) -> None:
    batches = source_batches(seed)
    whole = packed(batches)
    for number, begun in enumerate(whole):
        left, at = list(batches), begun.first_offset
        while len(records := read_records(left[0].header, left[0].data)) <= at:
            at -= len(records)
            left.pop(0)
        assert packed(left, begun.first_offset, skip=at) == whole[number:]


@pytest.mark.parametrize("codec", Codec)
def test_a_large_batch_is_sent_as_it_is(codec: Codec) -> None:
    noise = random.Random(5)
    records = [Record(700 + number, NOW_MS, None, noise.randbytes(2_000)) for number in range(60)]
    batch = RecordBatch.build(records, codec=codec, transactional=True, producer_id=5, producer_epoch=2)
    data = batch.encode()
    (sent,) = packed([SourceBatch(read_header(data), data, Fate.DATA)], 12)
    header = read_header(sent.data)
    assert sent.data[61:] == data[61:]
    assert (header.base_offset, header.base_sequence, header.is_transactional, header.codec) == (0, 12, False, codec)


def test_small_batches_are_sent_together_in_their_codec() -> None:
    found = [
        RecordBatch.build([Record(number, NOW_MS, b"k", b"v" * 100)], codec=codec).encode()
        for number, codec in enumerate([Codec.NONE] * 2_000 + [Codec.LZ4] * 50)
    ]
    sent = packed([SourceBatch(read_header(data), data, Fate.DATA) for data in found])
    assert [read_header(one.data).codec for one in sent] == [Codec.NONE, Codec.NONE, Codec.LZ4]
    assert max(one.record_count for one in sent) > 1_000


def test_what_would_be_larger_than_the_source_had_it_is_sent_in_pieces() -> None:
    """As when it was compressed better than it can be here."""
    noise = random.Random(5)
    records = [Record(2 * number, NOW_MS, None, noise.randbytes(36_000)) for number in range(40)]
    header = read_header(RecordBatch.build(records).encode())
    packer = Packer(0)
    sent = [*packer.add(SourceBatch(replace(header, size=400_000), b"", Fate.DATA), records), *packer.flush()]
    assert [one.first_offset for one in sent] == [0, 10, 20, 30]
    assert all(len(one.data) <= 400_000 for one in sent)
