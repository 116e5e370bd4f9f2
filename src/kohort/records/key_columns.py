"""The keys of a table as Arrow columns: each distinct key's text is read once, and rows take it by number."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kohort.records.kernels import Ints, Longs
from kohort.records.key_table import KeyTable
from kohort.records.offsets_topic import CoordinatorKey, GroupKey, OffsetKey


class KeyColumns:
    """Group, topic, partition and version of the keys of a table that grows; what a key lacks is None or 0."""

    def __init__(self, keys: KeyTable) -> None:
        self.keys = keys
        self._groups: pa.Array = pa.array([], pa.string())
        self._topics: pa.Array = pa.array([], pa.string())
        self._partitions: Ints = np.empty(0, np.int32)
        self._versions: NDArray[np.int16] = np.empty(0, np.int16)

    def groups(self, ids: Ints) -> pa.Array:
        self._read_new()
        return self._groups.take(pa.array(ids))

    def topics(self, ids: Ints) -> pa.Array:
        self._read_new()
        return self._topics.take(pa.array(ids))

    def partitions(self, ids: Ints) -> Ints:
        self._read_new()
        return self._partitions[ids]

    def versions(self, ids: Ints) -> NDArray[np.int16]:
        self._read_new()
        return self._versions[ids]

    def of_groups(self, wanted: frozenset[str]) -> NDArray[np.bool_]:
        """Which keys belong to one of some groups."""
        self._read_new()
        return _among(self._groups, wanted)

    def of_topics(self, wanted: frozenset[str]) -> NDArray[np.bool_]:
        self._read_new()
        return _among(self._topics, wanted)

    def _read_new(self) -> None:
        known, size = len(self._partitions), self.keys.size
        if known == size:
            return
        new: Longs = np.arange(known, size)
        plain = self.keys.is_plain_offset(new)
        groups: list[str | None] = [None] * len(new)
        topics: list[str | None] = [None] * len(new)
        partitions, versions = np.zeros(len(new), np.int32), np.ones(len(new), np.int16)
        places = np.flatnonzero(plain).tolist()
        for place, (group, topic, partition) in zip(places, self.keys.plain_offsets(new[plain]), strict=True):
            groups[place], topics[place], partitions[place] = group, topic, partition
        for place in np.flatnonzero(~plain).tolist():
            key = self.keys.key(known + place)
            if isinstance(key, OffsetKey):
                groups[place], topics[place], partitions[place] = key.group, key.topic, key.partition
                versions[place] = key.version
            elif isinstance(key, GroupKey | CoordinatorKey):
                groups[place] = key.group
        self._groups = pa.concat_arrays([self._groups, pa.array(groups, pa.string())])
        self._topics = pa.concat_arrays([self._topics, pa.array(topics, pa.string())])
        self._partitions = np.concatenate([self._partitions, partitions])
        self._versions = np.concatenate([self._versions, versions])


def _among(texts: pa.Array, wanted: frozenset[str]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(texts, value_set=pa.array(sorted(wanted), pa.string())).to_numpy(
        zero_copy_only=False
    )
    return found
