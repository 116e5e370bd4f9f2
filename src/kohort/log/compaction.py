"""Which records survive a cleaning, batch by batch: Kafka's rules after KIP-534. Bytes in, bytes out.

A cleaning walks over the log from its start. Of each key only the record at the highest offset stays, as the
`OffsetMap` of the dirty part knows it. What else goes, and when:

- data of aborted transactions and records without a key go at once;
- tombstones, and markers of transactions of which no batch is left, get a delete horizon when a cleaning first meets
  them (attribute 0x40, the base timestamp is then the horizon), and go when it has passed;
- a marker never goes while a batch of its transaction is there, for without it an older batch would be read as part of
  the producer's next transaction;
- a batch that holds the last sequence of a living producer stays, if need be without records.

A batch that loses nothing stays as it is, byte for byte. One that does keeps its offsets, producer and sequence.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from kohort.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    NO_TIMESTAMP,
    BatchHeader,
    Record,
    RecordBatch,
    read_records,
)
from kohort.records.compression import Codec
from kohort.records.control import ControlType, decode_control_type

_ENTRY_OVERHEAD = 165
"""About what a dictionary needs for a key of bytes and an integer, beyond the key."""

_ENDS = (ControlType.ABORT, ControlType.COMMIT)


class AbortedTransaction(Protocol):
    """A transaction that ended in nothing: its first offset and that of its marker."""

    @property
    def producer_id(self) -> int: ...

    @property
    def first_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class LastRecord(NamedTuple):
    """Where a living producer stands: its last data offset (None if only a marker is left of it) and its epoch."""

    data_offset: int | None
    producer_epoch: int


class OffsetMap:
    """The latest offset of each key in the dirty part of a log, as far as the memory goes."""

    def __init__(self, memory: int, first_dirty_offset: int = 0) -> None:
        self._offsets: dict[bytes, int] = {}
        self._left = memory
        self.first_dirty_offset = first_dirty_offset
        self.latest_offset = first_dirty_offset - 1
        """From the first dirty offset up to here every record is known."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put_batch(self, batch: RecordBatch, *, aborted: bool = False) -> bool:
        """Note all records of a batch, or none of them if its transaction was aborted; False if they do not fit."""
        if not aborted and not batch.header.is_control:
            for record in batch.records:
                if not self._put(record):
                    return False
        self.latest_offset = batch.header.last_offset
        return True

    def _put(self, record: Record) -> bool:
        if record.key is None or record.offset < self.first_dirty_offset:
            return True
        if record.key not in self._offsets:
            needed = len(record.key) + _ENTRY_OVERHEAD
            if needed > self._left:
                return False
            self._left -= needed
        self._offsets[record.key] = record.offset
        return True

    def supersedes(self, record: Record) -> bool:
        """Whether a later record has this one's key."""
        return record.key is not None and self._offsets.get(record.key, -1) > record.offset


class Aborted:
    """Which batches belong to aborted transactions."""

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[tuple[int, int]]] = {}
        for transaction in transactions:
            spans = self._by_producer.setdefault(transaction.producer_id, [])
            spans.append((transaction.last_offset, transaction.first_offset))
        for spans in self._by_producer.values():
            spans.sort()

    def contains(self, header: BatchHeader) -> bool:
        spans = self._by_producer.get(header.producer_id) if header.is_transactional else None
        if not spans or header.is_control:
            return False
        ended_at = bisect_left(spans, (header.last_offset,))
        return ended_at < len(spans) and spans[ended_at][1] <= header.base_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a cleaning knows before it starts."""

    latest: OffsetMap
    aborted: Aborted
    last_records: Mapping[int, LastRecord]
    now_ms: int
    delete_retention_ms: int


class Compaction:
    """One walk over a log, from its start: feed it every batch in order and write down what it returns."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._seen: set[int] = set()
        """Producers of which a batch was met since their last marker."""
        self._wrapped: set[bytes] = set()
        """Keys inside of compressed batches of formats 0 and 1, which are never opened up: their tombstones stay."""

    def clean(self, header: BatchHeader, data: bytes) -> bytes:
        """What becomes of the batch that `header` tells of in `data`: the same bytes, others, or none."""
        original = data[header.position : header.end]
        if header.last_offset > self._rules.latest.latest_offset:
            self._pass(header)
            return original
        if header.magic < 2:
            return original if self._retains_legacy(header, data) else b""
        records = read_records(header, data)
        if header.is_control:
            return self._clean_marker(header, records, original)
        self._pass(header)
        if self._rules.aborted.contains(header):
            return self._emptied(header, records, original)
        retained = [record for record in records if self._retains(header, record)]
        if not retained:
            return self._emptied(header, records, original)
        sets_horizon = (
            header.delete_horizon is None
            and header.base_offset >= self._rules.latest.first_dirty_offset
            and any(record.value is None for record in retained)
        )
        return self._rewritten(header, records, retained, sets_horizon, original)

    def _pass(self, header: BatchHeader) -> None:
        if header.is_control:
            self._seen.discard(header.producer_id)
        elif header.is_transactional:
            self._seen.add(header.producer_id)

    def _clean_marker(self, header: BatchHeader, records: Sequence[Record], original: bytes) -> bytes:
        has_data = header.producer_id in self._seen
        self._pass(header)
        if not records:
            return self._emptied(header, records, original)
        if has_data or decode_control_type(records[0].key) not in _ENDS:
            return original
        if header.delete_horizon is not None and header.delete_horizon <= self._rules.now_ms:
            return self._emptied(header, records, original)
        return self._rewritten(header, records, records, header.delete_horizon is None, original)

    def _retains(self, header: BatchHeader, record: Record) -> bool:
        if record.key is None or self._rules.latest.supersedes(record):
            return False
        if record.value is not None or record.key in self._wrapped:
            return True
        return header.delete_horizon is None or header.delete_horizon > self._rules.now_ms

    def _retains_legacy(self, header: BatchHeader, data: bytes) -> bool:
        """Formats 0 and 1 have no place for a horizon, so that their tombstones stay."""
        records = read_records(header, data)
        retained = any(record.key is not None and not self._rules.latest.supersedes(record) for record in records)
        if retained and header.codec != Codec.NONE:
            self._wrapped.update(record.key for record in records if record.key is not None)
        return retained

    def _emptied(self, header: BatchHeader, records: Sequence[Record], original: bytes) -> bytes:
        """Nothing, or the bare header if the producer needs it."""
        if not self._is_last_of_producer(header):
            return b""
        if not records:
            return original
        attributes = header.attributes & ~(DELETE_HORIZON | CODEC_MASK)
        return RecordBatch(replace(header, attributes=attributes, base_timestamp=NO_TIMESTAMP), ()).encode()

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._rules.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset is not None:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _rewritten(
        self,
        header: BatchHeader,
        records: Sequence[Record],
        retained: Sequence[Record],
        sets_horizon: bool,
        original: bytes,
    ) -> bytes:
        if len(retained) == len(records) and not sets_horizon:
            return original
        changed = replace(header, max_timestamp=_max_timestamp(header, retained))
        if sets_horizon:
            horizon = self._rules.now_ms + self._rules.delete_retention_ms
            changed = replace(changed, attributes=header.attributes | DELETE_HORIZON, base_timestamp=horizon)
        elif header.delete_horizon is None:
            changed = replace(changed, base_timestamp=retained[0].timestamp)
        return RecordBatch(changed, tuple(retained)).encode()


def _max_timestamp(header: BatchHeader, retained: Sequence[Record]) -> int:
    if header.is_log_append_time:
        return header.max_timestamp
    return max(record.timestamp for record in retained)
