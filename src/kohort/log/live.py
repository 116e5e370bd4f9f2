"""The offsets topic of a live cluster, read as the raw batches that stand in its log.

It is read from each partition's first offset to the end that it had when we came.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kohort.errors import CorruptLog
from kohort.log.cluster import EARLIEST, LATEST, LiveCluster
from kohort.log.source import OnDamage, OnProgress
from kohort.records.batch import RecordBatch, read_batches, read_header, undecided

if TYPE_CHECKING:
    from kohort.records.columns import Columns
    from kohort.records.key_table import KeyTable

_FETCH_BYTES = 8 * 1024 * 1024


def live_partitions(cluster: LiveCluster, topic: str) -> list["LivePartition"]:
    """Every partition of a topic with the offsets that it holds now."""
    keys = [(topic, number) for number in cluster.partitions_of(topic)]
    starts, ends = cluster.offsets(keys, EARLIEST), cluster.offsets(keys, LATEST)
    return [LivePartition(cluster, topic, key[1], starts[key], ends[key]) for key in keys]


@dataclass(frozen=True, slots=True)
class LivePartition:
    """A partition of a live cluster, from its first offset to where it ended when it was asked."""

    cluster: LiveCluster
    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """No broker tells it in passing; 0 stands for unknown."""
        return 0

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
        for data in self.windows():
            for batch in read_batches(data, on_damage=on_damage):
                if batch.header.base_offset < self.end:
                    yield batch
            on_progress(len(data))

    def columns(self, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
        import numpy as np

        from kohort.records.columns import decode

        for data in self.windows():
            yield decode(np.frombuffer(data, np.uint8), keys, on_damage=on_damage).columns
            on_progress(len(data))

    def windows(self) -> Iterator[bytes]:
        """Whole batches, fetch by fetch. A damaged frame ends it: what decodes the bytes will tell."""
        offset, room = self.start, _FETCH_BYTES
        while offset < self.end:
            data = self.cluster.fetch(self.topic, self.partition, offset, room)
            whole, next_offset, damaged = _whole_batches(data, offset, self.end)
            if damaged:
                yield data
                return
            if next_offset == offset:
                if len(data) < room:
                    return
                room *= 2
                continue
            offset = next_offset
            if whole:
                yield data[:whole]


def _whole_batches(data: bytes, offset: int, end: int) -> tuple[int, int, bool]:
    """How many bytes are whole batches below `end`, the offset behind them, and whether damage stopped the count.

    A fetch may end inside a batch.
    """
    position = 0
    while position < len(data) and offset < end and not undecided(data, position):
        try:
            header = read_header(data, position, verify=False)
        except CorruptLog:
            return position, offset, True
        if header.base_offset >= end:
            return position, end, False
        position, offset = header.end, header.next_offset
    return position, offset, False
