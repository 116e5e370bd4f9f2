"""The aborted transactions that end in a segment (`.txnindex`), in the order of their markers.

A reader of committed data gets all batches up to the last stable offset together with the aborted transactions among
them, and leaves those out. Each entry carries the last stable offset as it was when the transaction ended: once that
passes the end of a fetch, no later entry can concern it.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kohort.errors import CorruptLog

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction; `last_offset` is the offset of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The entries of one segment."""

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._entries = list(entries)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, entry: AbortedTransaction) -> None:
        self._entries.append(entry)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions whose markers stand at `offset` or behind it."""
        self._entries = [entry for entry in self._entries if entry.last_offset < offset]

    def collect(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """What a reader of offsets `start` up to `end` must leave out, and whether later segments cannot add to it."""
        found = []
        for entry in self._entries:
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    def encode(self) -> bytes:
        return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self._entries)

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TransactionIndex":
        """The entries in a `.txnindex`, checked; `CorruptLog` if they cannot be those of a segment at `base_offset`."""
        if len(data) % _ENTRY.size:
            raise CorruptLog(f"{len(data)} bytes are no whole number of entries")
        entries: list[AbortedTransaction] = []
        for number, (version, *fields) in enumerate(_ENTRY.iter_unpack(data)):
            entry = AbortedTransaction(*fields)
            at = number * _ENTRY.size
            if version != _VERSION:
                raise CorruptLog(f"unknown entry version {version}", position=at)
            if entry.last_offset < max(base_offset, entry.first_offset):
                raise CorruptLog(f"a transaction that ends at offset {entry.last_offset}", position=at)
            if entries and entry.last_offset <= entries[-1].last_offset:
                raise CorruptLog("entries are out of order", position=at)
            entries.append(entry)
        return cls(entries)
