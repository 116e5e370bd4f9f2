"""What a log of `__consumer_offsets` says, folded record by record from first to last: the model's own load."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kohort.errors import ErrorCode
from kohort.records.batch import RecordBatch
from kohort.records.control import ControlType, decode_control_type
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    Key,
    OffsetCommitValue,
    OffsetKey,
    Value,
    decode_key,
    decode_value,
)

COMMIT_TIMEOUT_MS = 5_000
LAST_GENERATION = 2**31 - 1

OffsetId = tuple[str, str, int]
"""Group, topic, partition."""

Puts = dict[OffsetId, tuple[int, OffsetCommitValue]]
"""Commits with their positions in the log."""


class Entry(NamedTuple):
    """A record of the log: a marker (`ends` says how), or a key with its value, None for a tombstone."""

    position: int
    producer_id: int | None
    ends: ControlType | None
    key: Key | None
    value: Value | None

    @property
    def offset_id(self) -> OffsetId | None:
        return (self.key.group, self.key.topic, self.key.partition) if isinstance(self.key, OffsetKey) else None

    @property
    def group(self) -> str | None:
        """The group that this is the record of."""
        return self.key.group if isinstance(self.key, GroupKey) else None


def entries(batches: Iterable[RecordBatch]) -> Iterator[Entry]:
    for batch in batches:
        header = batch.header
        producer_id = header.producer_id if header.is_transactional else None
        for record in batch.records:
            if header.is_control:
                yield Entry(record.offset, producer_id, ControlType(decode_control_type(record.key)), None, None)
            else:
                key = decode_key(record.key)
                yield Entry(record.offset, producer_id, None, key, decode_value(key, record.value))


@dataclass
class Folded:
    """What a log says."""

    offsets: Puts = field(default_factory=dict)
    pending: dict[int, Puts] = field(default_factory=dict)
    """By producer; none of them has nothing."""
    groups: dict[str, GroupMetadataValue] = field(default_factory=dict)
    uncommitted: set[int] = field(default_factory=set)
    """The offsets of transactions that were aborted or are open."""

    def offset_ids(self) -> set[OffsetId]:
        return {offset_id for puts in (self.offsets, *self.pending.values()) for offset_id in puts}


def fold(log: Iterable[Entry], without: Collection[int] = ()) -> Folded:
    """The log from first to last, but for some positions.

    A commit counts by its position, one of a transaction from the commit marker on; a tombstone ends all before it.
    """
    found = Folded()
    for entry in log:
        if entry.position in without:
            continue
        if entry.ends is not None:
            _end_transaction(found, entry)
        elif entry.offset_id is not None:
            _put_offset(found, entry, entry.offset_id)
        elif entry.group is not None:
            if entry.value is None:
                found.groups.pop(entry.group, None)
            else:
                found.groups[entry.group] = entry.value
    found.pending = {producer_id: puts for producer_id, puts in found.pending.items() if puts}
    return found


def _end_transaction(found: Folded, marker: Entry) -> None:
    for offset_id, put in found.pending.pop(marker.producer_id, {}).items():
        if marker.ends is ControlType.COMMIT:
            found.uncommitted.discard(put[1].offset)
            known = found.offsets.get(offset_id)
            if known is None or known[0] < put[0]:
                found.offsets[offset_id] = put


def _put_offset(found: Folded, entry: Entry, offset_id: OffsetId) -> None:
    if entry.value is None:
        for puts in (found.offsets, *found.pending.values()):
            puts.pop(offset_id, None)
    elif entry.producer_id is None:
        found.offsets[offset_id] = entry.position, entry.value
    else:
        found.uncommitted.add(entry.value.offset)
        found.pending.setdefault(entry.producer_id, {})[offset_id] = entry.position, entry.value


def endings(log: Iterable[Entry], group: str) -> int:
    """How often the group has ended so far; its generations begin anew each time."""
    return sum(entry.group == group and entry.value is None for entry in log)


def generation_has_not_fallen(group: str, before: int, now: int) -> None:
    assert now >= before or (before, now) == (LAST_GENERATION, 1), f"generation {before} of {group!r}, then {now}"


@dataclass(eq=False)
class Write:
    """An append as the log saw it: what it held, and what became of it (`error` is None until that is known)."""

    partition: int
    made_ms: int
    entries: tuple[Entry, ...]
    error: ErrorCode | None = None
    is_gone: bool = False
    """It failed and does not stand in the log."""

    def record_of(self, group: str) -> GroupMetadataValue | None:
        """What it says of a group; None if nothing, or its end."""
        return next((entry.value for entry in self.entries if entry.group == group), None)
