"""Bytes by number: what a replay keeps of the values of keys, without an object for each."""

import numpy as np

from kohort.records import kernels
from kohort.records.columns import OffsetValues
from kohort.records.kernels import Longs
from kohort.records.machine import Bytes


class Values:
    """Bytes per key, the latest kept; the room of replaced ones is won back when it is more than half."""

    def __init__(self) -> None:
        self._starts: Longs = np.zeros(0, np.int64)
        self._sizes: Longs = np.zeros(0, np.int64)
        self._arena: Bytes = np.empty(1 << 16, np.uint8)
        self._used = 0
        self._live = 0

    def offset_values(self, keys: Longs) -> OffsetValues:
        """The values of some keys as offset commits, read in bulk as far as they are plain ones."""
        return OffsetValues(self._arena, self._starts[keys], self._sizes[keys].astype(np.int32))

    def of(self, keys: Longs) -> list[bytes]:
        """The values of some keys."""
        arena = self._arena[: self._used].tobytes()
        starts, sizes = self._starts[keys].tolist(), self._sizes[keys].tolist()
        return [arena[start : start + size] for start, size in zip(starts, sizes, strict=True)]

    def packed(self, keys: Longs) -> tuple[Longs, Bytes]:
        """The values of some keys one behind the other, and the bounds between them."""
        sizes = self._sizes[keys]
        bounds = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        data = np.empty(int(bounds[-1]), np.uint8)
        kernels.gather(self._arena, self._starts[keys], sizes, data, bounds[:-1])
        return bounds, data

    def drop(self, keys: Longs) -> None:
        self._live -= int(self._sizes[keys].sum())
        self._sizes[keys] = 0

    def resize(self, keys: int) -> None:
        self._starts = extended(self._starts, keys, 0)
        self._sizes = extended(self._sizes, keys, 0)

    def put(self, keys: Longs, data: Bytes, starts: Longs, sizes: Longs) -> None:
        """Keep these pieces of `data` under `keys`, each of which is named once."""
        self._reserve(int(sizes.sum()))
        places = np.zeros(len(sizes), np.int64)
        np.cumsum(sizes[:-1], out=places[1:])
        places += self._used
        kernels.gather(data, starts, sizes, self._arena, places)
        self._live += int(sizes.sum()) - int(self._sizes[keys].sum())
        self._used += int(sizes.sum())
        self._starts[keys] = places
        self._sizes[keys] = sizes

    def put_all(self, values: dict[int, bytes]) -> None:
        if values:
            sizes = np.array([len(value) for value in values.values()], np.int64)
            starts = np.cumsum(sizes) - sizes
            data = np.frombuffer(b"".join(values.values()), np.uint8)
            self.put(np.array(list(values), np.int64), data, starts, sizes)

    def put_from(self, keys: Longs, other: "Values", other_keys: Longs) -> None:
        self.put(keys, other._arena, other._starts[other_keys], other._sizes[other_keys])

    def _reserve(self, wanted: int) -> None:
        if self._used + wanted <= len(self._arena):
            return
        packed = np.cumsum(self._sizes) - self._sizes
        arena = np.empty(max(1 << 16, 2 * (self._live + wanted)), np.uint8)
        kernels.gather(self._arena, self._starts, self._sizes, arena, packed)
        self._arena, self._starts, self._used = arena, packed, self._live


def extended(array: Longs, size: int, filler: int) -> Longs:
    """An array of at least so many items, the new ones filled."""
    if size <= len(array):
        return array
    grown = np.full(size, filler, np.int64)
    grown[: len(array)] = array
    return grown
