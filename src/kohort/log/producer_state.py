"""The producers of a partition: whose batch is taken, and which transactions are open.

An append is checked against copies of the entries (`prepare`) and takes effect only when its bytes are in the log
(`commit`), so a failed write leaves no trace. The same two steps rebuild the state from the log.

A transaction holds the last stable offset back from its first batch until its marker, and until the marker itself is
below the high watermark.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kohort.log.producer_entry import AppendOrigin, BatchMetadata, CompletedTransaction, ProducerEntry
from kohort.log.txn_index import AbortedTransaction
from kohort.records.batch import NO_PRODUCER_ID, BatchHeader, read_records
from kohort.records.control import Marker, decode_marker


class ProducerAppend:
    """What an append will do to the producers, once it is written."""

    __slots__ = ("completed", "duplicate", "entries")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.completed: list[CompletedTransaction] = []
        self.duplicate: BatchMetadata | None = None


class PlacedBatch(NamedTuple):
    """A batch under the offsets that it has, or will have, in the log; the header was read from `data`."""

    header: BatchHeader
    data: bytes


class ProducerState:
    """The producers of one partition."""

    def __init__(self, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self._entries: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        self._unreplicated: list[CompletedTransaction] = []
        self.end_offset = 0
        """The state is that of the log up to here."""

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        return self._entries

    def prepare(self, batches: Iterable[PlacedBatch], origin: AppendOrigin) -> ProducerAppend:
        """Check batches against what is known. A client's batch that is there already ends the work: `duplicate`."""
        append = ProducerAppend()
        for header, data in batches:
            producer_id = header.producer_id
            if producer_id == NO_PRODUCER_ID:
                continue
            known = append.entries.get(producer_id) or self._entries.get(producer_id)
            if origin is AppendOrigin.CLIENT and known and (duplicate := known.find_duplicate(header)):
                append.duplicate = duplicate
                return append
            if producer_id not in append.entries:
                append.entries[producer_id] = known.copy() if known else ProducerEntry(producer_id)
            entry = append.entries[producer_id]
            if not header.is_control:
                entry.append(header, origin)
            elif (marker := read_marker(header, data)) and (completed := entry.append_marker(header, marker, origin)):
                append.completed.append(completed)
        return append

    def commit(self, append: ProducerAppend, end_offset: int, high_watermark: int) -> list[AbortedTransaction]:
        """Let a prepared append take effect, and return the transactions that it aborted."""
        self._forget_replicated(high_watermark)
        for producer_id, entry in append.entries.items():
            self._entries[producer_id] = entry
            if entry.current_txn_first_offset is not None:
                self._ongoing.setdefault(producer_id, entry.current_txn_first_offset)
        aborted = []
        for transaction in append.completed:
            self._ongoing.pop(transaction.producer_id, None)
            entry = append.entries[transaction.producer_id]
            if entry.current_txn_first_offset is not None:
                self._ongoing[transaction.producer_id] = entry.current_txn_first_offset
            self._unreplicated.append(transaction)
            if transaction.is_aborted:
                stable = min(self._ongoing.values(), default=transaction.last_offset + 1)
                aborted.append(
                    AbortedTransaction(
                        transaction.producer_id, transaction.first_offset, transaction.last_offset, stable
                    )
                )
        self.end_offset = end_offset
        return aborted

    def replay(self, header: BatchHeader, data: bytes) -> list[AbortedTransaction]:
        """Follow a batch that was read back from the log; the header was read from `data`."""
        if header.producer_id == NO_PRODUCER_ID:
            self.end_offset = header.next_offset
            return []
        append = self.prepare([PlacedBatch(header, data)], AppendOrigin.REPLICATION)
        return self.commit(append, header.next_offset, header.base_offset)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the oldest transaction began that is open, or whose marker is not yet below the high watermark."""
        self._forget_replicated(high_watermark)
        starts = [*self._ongoing.values(), *(txn.first_offset for txn in self._unreplicated)]
        return min(starts, default=None)

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int) -> None:
        """Start over from a snapshot, without the producers that have expired since."""
        self._entries = {entry.producer_id: entry for entry in entries if not self._is_expired(entry, now_ms)}
        self._ongoing = {
            entry.producer_id: entry.current_txn_first_offset
            for entry in self._entries.values()
            if entry.current_txn_first_offset is not None
        }
        self._unreplicated = []
        self.end_offset = end_offset

    def remove_expired(self, now_ms: int) -> int:
        """Forget the producers that have been silent for too long and have no transaction open."""
        expired = [entry.producer_id for entry in self._entries.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self._entries[producer_id]
        return len(expired)

    def _forget_replicated(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = [txn for txn in self._unreplicated if txn.last_offset >= high_watermark]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.current_txn_first_offset is None and now_ms - entry.last_timestamp >= self._expiration_ms


def read_marker(header: BatchHeader, data: bytes) -> Marker | None:
    """The marker in a control batch; None if the cleaner took it out, or if it is another kind of control record."""
    records = read_records(header, data)
    return decode_marker(records[0]) if records else None
