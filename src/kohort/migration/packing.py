"""Batches of the source as batches for the copy.

A batch that has lost nothing is sent with its records as they are, compressed by whoever compressed it. Of others new
ones are made, in the same codec: of old formats, of those in which offsets are missing, and of small ones, which are
sent together. Where batches end follows from the records alone, so that whoever begins again makes the same ones.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kohort.migration.source import SourceBatch
from kohort.records.batch import CODEC_MASK, TRANSACTIONAL, BatchHeader, Record, RecordBatch, reissued
from kohort.records.compression import Codec

PRODUCER_ID = int.from_bytes(b"kohort\0\1")
"""A number of our own: brokers give theirs from 0 on, and never come that far. See `writer.py`."""

_SMALL = 64 * 1024
_TOGETHER = 256 * 1024
_SEQUENCES = 0x7FFF_FFFF


class Outgoing(NamedTuple):
    """A batch as it is sent, with the offsets that it gets."""

    first_offset: int
    record_count: int
    data: bytes

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.record_count


class Packer:
    """Takes what is to be copied, batch by batch, and gives what is to be sent."""

    def __init__(self, first_offset: int) -> None:
        self._next = first_offset
        self._waiting: list[Record] = []
        self._size = 0
        self._codec = Codec.NONE

    def add(self, batch: SourceBatch, records: Sequence[Record]) -> Iterator[Outgoing]:
        """These records of a batch come next."""
        header = batch.header
        if header.size >= _SMALL and _is_whole(header, records):
            yield from self.flush()
            yield self._sent(len(records), self._as_it_is(batch))
            return
        codec = Codec(header.codec)
        if self._waiting and (codec is not self._codec or self._size + header.size > _TOGETHER):
            yield from self.flush()
        self._codec = codec
        self._waiting += records
        self._size += header.size
        if self._size >= _TOGETHER:
            yield from self.flush()

    def flush(self) -> Iterator[Outgoing]:
        """What still waits for others."""
        if self._waiting:
            yield from self._packed(self._waiting, max(self._size, _TOGETHER))
        self._waiting, self._size = [], 0

    def _packed(self, records: Sequence[Record], most: int) -> Iterator[Outgoing]:
        """One batch; several, if it were larger than what the source's broker took."""
        numbered = [record._replace(offset=number) for number, record in enumerate(records)]
        sequence = self._next & _SEQUENCES
        batch = RecordBatch.build(
            numbered, codec=self._codec, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence
        )
        data = batch.encode()
        if len(data) > most and len(records) > 1:
            middle = len(records) // 2
            yield from self._packed(records[:middle], most)
            yield from self._packed(records[middle:], most)
        else:
            yield self._sent(len(records), data)

    def _as_it_is(self, batch: SourceBatch) -> bytes:
        return reissued(
            batch.header,
            batch.data,
            producer_id=PRODUCER_ID,
            base_sequence=self._next & _SEQUENCES,
        )

    def _sent(self, count: int, data: bytes) -> Outgoing:
        sent = Outgoing(self._next, count, data)
        self._next = sent.next_offset
        return sent


def _is_whole(header: BatchHeader, records: Sequence[Record]) -> bool:
    """Whether all offsets that the batch has room for are there, and its times are those that its producer gave."""
    return (
        header.magic == 2
        and not header.attributes & ~(CODEC_MASK | TRANSACTIONAL)
        and len(records) == header.record_count == header.last_offset_delta + 1
        and records[-1].offset - records[0].offset == header.last_offset_delta
    )
