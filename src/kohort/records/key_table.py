"""Distinct record keys, numbered: a replay then works on small integers, and each key's text is read once."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from kohort.records import kernels
from kohort.records.kernels import Ints, Longs, Slots
from kohort.records.machine import Bytes
from kohort.records.offsets_topic import CoordinatorKey, GroupKey, Key, OffsetKey, UnknownKey, decode_key, encode_key

if TYPE_CHECKING:
    from kohort.records.columns import Columns

OFFSET_KIND, GROUP_KIND, UNREADABLE_KIND = 1, 2, -1
"""Kinds of key by number: the record's type, with both types of offset keys as one; -1 is no key that we can read."""

Number = TypeVar("Number", bound=np.generic)


class KeyTable:
    """Distinct keys, numbered in the order of their first appearance."""

    def __init__(self) -> None:
        self.size = 0
        self._slots: Slots = np.full(1 << 12, kernels.EMPTY_SLOT)
        self._hashes: Slots = np.empty(1 << 11, np.uint64)
        self._starts: Longs = np.zeros((1 << 11) + 1, np.int64)
        self._arena: Bytes = np.empty(1 << 17, np.uint8)
        self._shapes = np.empty(1 << 11, np.int8)
        self._kinds = np.empty(0, np.int8)
        self._canonical: Ints = np.empty(0, np.int32)
        self._first_of: dict[tuple[object, ...], int] = {}

    def __getstate__(self) -> tuple[bytes, Longs]:
        return self._arena[: self._starts[self.size]].tobytes(), self._starts[: self.size + 1].copy()

    def __setstate__(self, state: tuple[bytes, Longs]) -> None:
        self.__init__()  # type: ignore[misc]  # a table is rebuilt from its keys, which are all that travels
        raw, starts = state
        self.intern_all(np.frombuffer(raw, np.uint8), starts)

    def raw(self, key: int) -> bytes:
        return self._arena[self._starts[key] : self._starts[key + 1]].tobytes()

    def packed(self, keys: Longs) -> tuple[Longs, Bytes]:
        """The bytes of some keys one behind the other, and the bounds between them."""
        sizes = self._starts[keys + 1] - self._starts[keys]
        bounds = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        data = np.empty(int(bounds[-1]), np.uint8)
        kernels.gather(self._arena, self._starts[keys], sizes, data, bounds[:-1])
        return bounds, data

    def is_plain_offset(self, keys: Longs) -> NDArray[np.bool_]:
        """Which keys `plain_offsets` can read: offset keys of the current type in plain ASCII, which most are."""
        plain: NDArray[np.bool_] = self._shapes[keys] == kernels.CLEAN_OFFSET
        return plain

    def plain_offsets(self, keys: Longs) -> Iterator[tuple[str, str, int]]:
        """Group, topic and partition of plain offset keys, read in bulk."""
        starts, ends = self._starts[keys], self._starts[keys + 1]
        group_ends = starts + 4 + self._int16s(starts + 2)
        topic_starts = group_ends + 2
        partitions = (self._int16s(ends - 4).astype(np.int32) << 16) + self._int16s(ends - 2).astype(np.uint16)
        characters = self._arena[: self._starts[self.size]].tobytes().decode("latin-1")
        return zip(
            [characters[start:end] for start, end in zip((starts + 4).tolist(), group_ends.tolist(), strict=True)],
            [characters[start:end] for start, end in zip(topic_starts.tolist(), (ends - 4).tolist(), strict=True)],
            partitions.tolist(),
            strict=True,
        )

    def _int16s(self, at: Longs) -> NDArray[np.int16]:
        return (self._arena[at].astype(np.int16) << 8) | self._arena[at + 1]

    def key(self, key: int) -> Key:
        return decode_key(self.raw(key))

    def intern(self, raw: bytes) -> int:
        return int(self.intern_all(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]))[0])

    def intern_all(self, data: Bytes, bounds: Longs) -> Longs:
        """The numbers of the keys that stand between `bounds` in `data`."""
        self.reserve(len(bounds) - 1, int(bounds[-1] - bounds[0]))
        ids = np.empty(len(bounds) - 1, np.int64)
        self.size = kernels.intern_all(
            data, bounds, self._slots, self._hashes, self._starts, self._arena, self._shapes, self.size, ids
        )
        return ids

    def intern_table(self, other: "KeyTable") -> Longs:
        """The numbers here of all keys of another table."""
        return self.intern_all(other._arena, other._starts[: other.size + 1])

    def reserve(self, keys: int, key_bytes: int) -> None:
        """Make room for so many more keys."""
        wanted = self.size + keys
        if wanted > len(self._hashes):
            room = 1 << (wanted - 1).bit_length()
            self._hashes = _grown(self._hashes, room)
            self._starts = _grown(self._starts, room + 1)
            self._shapes = _grown(self._shapes, room)
        if 2 * wanted > len(self._slots):
            self._slots = np.full(1 << (2 * wanted - 1).bit_length(), kernels.EMPTY_SLOT)
            kernels.rehash(self._hashes, self.size, self._slots)
        used = int(self._starts[self.size])
        if used + key_bytes > len(self._arena):
            self._arena = _grown(self._arena, 1 << (used + key_bytes - 1).bit_length())

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each key."""
        self._classify()
        return self._kinds

    @property
    def canonical(self) -> Ints:
        """For each key the one that means the same thing.

        An offset key of type 0, one with bytes behind it, or one whose UTF-8 is mended on reading is the same key to
        Kafka as its plain form.
        """
        self._classify()
        return self._canonical

    def _classify(self) -> None:
        known = len(self._kinds)
        while known < self.size:
            shapes = self._shapes[known : self.size]
            kinds = np.where(shapes == kernels.CLEAN_OFFSET, OFFSET_KIND, GROUP_KIND).astype(np.int8)
            canonical = np.arange(known, self.size, dtype=np.int32)
            self._kinds = np.concatenate([self._kinds, kinds])
            self._canonical = np.concatenate([self._canonical, canonical])
            odd = known + np.flatnonzero(shapes == kernels.ODD)
            known = self.size
            for number in odd:
                self._classify_odd(int(number))

    def _classify_odd(self, number: int) -> None:
        key = self.key(number)
        match key:
            case OffsetKey():
                self._kinds[number] = OFFSET_KIND
                self._canonical[number] = self._plain_form(OffsetKey(key.group, key.topic, key.partition), number)
            case GroupKey():
                self._kinds[number] = GROUP_KIND
                self._canonical[number] = self._plain_form(GroupKey(key.group), number)
            case CoordinatorKey():
                self._kinds[number] = key.version
                self._canonical[number] = self._first_of.setdefault((key.version, *key.fields.values()), number)
            case UnknownKey():
                self._kinds[number] = UNREADABLE_KIND

    def _plain_form(self, key: OffsetKey | GroupKey, number: int) -> int:
        """The number of a key's plain form. Text that was mended may be too long to be written: then the first one."""
        try:
            return self.intern(encode_key(key))
        except struct.error:
            return self._first_of.setdefault((key,), number)

    def grow(self) -> None:
        """Make more room where the kernels found none."""
        if self.size == len(self._hashes) or 2 * self.size >= len(self._slots):
            self.reserve(max(self.size, 1), 0)
        else:
            self.reserve(0, len(self._arena))

    def decode_into(self, columns: "Columns", starts: Longs, ends: Longs, first_rows: Longs, batch: int) -> int:
        """Parse batches from `batch` on into rows; returns the first one that is malformed, or how many there are."""
        while True:
            batch, self.size, status = kernels.decode_records(
                columns.data,
                columns.heads,
                starts,
                ends,
                first_rows,
                batch,
                self._slots,
                self._hashes,
                self._starts,
                self._arena,
                self._shapes,
                self.size,
                columns.offsets,
                columns.timestamps,
                columns.key_ids,
                columns.value_starts,
                columns.value_sizes,
                columns.batches,
                columns.record_sizes,
            )
            if status != kernels.TABLE_FULL:
                return int(batch)
            self.grow()


def _grown(array: NDArray[Number], size: int) -> NDArray[Number]:
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown
