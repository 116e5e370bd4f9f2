"""A running cluster as a source: each partition up to where it was decided when it was looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kohort.admin.cluster import Cluster
from kohort.admin.groups import list_groups
from kohort.admin.offsets import Offsets, committed_offsets
from kohort.errors import CorruptLog
from kohort.log.cluster import TopicPartition
from kohort.log.source import OnDamage, OnProgress
from kohort.migration.reading import Bounds, Fetched, Isolation, bounds, fetch
from kohort.migration.settings import own_settings
from kohort.migration.source import NEVER_COPIED, Fate, SourceBatch, SourceTopic
from kohort.records.batch import BatchHeader, read_records
from kohort.records.control import ControlType, decode_marker


class LiveSource:
    """Everything that a cluster has."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def size(self) -> int:
        """No broker tells it in passing."""
        return 0

    def topics(self) -> dict[str, SourceTopic]:
        names = sorted(self._cluster.topics() - NEVER_COPIED)
        settings = own_settings(self._cluster, names)
        found = {}
        for name in names:
            numbers = self._cluster.partitions_of(name)
            if numbers:
                found[name] = SourceTopic(name, numbers[-1] + 1, tuple(numbers), settings.get(name))
        return found

    def partition(self, topic: str, number: int) -> "LivePartition":
        return LivePartition(self._cluster, (topic, number), bounds(self._cluster, (topic, number)))

    def groups(self, on_damage: OnDamage) -> dict[str, Offsets]:  # noqa: ARG002  # a cluster answers or does not
        return committed_offsets(self._cluster, [listed.group for listed in list_groups(self._cluster)])


@dataclass(frozen=True, slots=True)
class LivePartition:
    """A partition of a running cluster."""

    cluster: Cluster
    where: TopicPartition
    bounds: Bounds

    @property
    def start(self) -> int:
        return self.bounds.start

    @property
    def stable_end(self) -> int:
        return self.bounds.stable_end

    @property
    def log_end(self) -> int:
        return self.bounds.end

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[SourceBatch]:  # noqa: ARG002
        for fetched in fetch(self.cluster, self.where, self.start, self.stable_end, Isolation.READ_COMMITTED):
            yield from _with_fates(fetched)
            on_progress(len(fetched.data))


def _with_fates(fetched: Fetched) -> Iterator[SourceBatch]:
    """As consumers do it: a producer's transaction is an aborted one from where the answer says, to its marker."""
    aborted = sorted(fetched.aborted, key=lambda one: one.first_offset, reverse=True)
    aborting: set[int] = set()
    for header in fetched.headers:
        while aborted and aborted[-1].first_offset <= header.last_offset:
            aborting.add(aborted.pop().producer_id)
        if header.is_control:
            if _is_abort(header, fetched.data):
                aborting.discard(header.producer_id)
            yield SourceBatch(header, fetched.data, Fate.CONTROL)
        elif header.is_transactional and header.producer_id in aborting:
            yield SourceBatch(header, fetched.data, Fate.ABORTED)
        else:
            yield SourceBatch(header, fetched.data, Fate.DATA)


def _is_abort(header: BatchHeader, data: Any) -> bool:
    try:
        records = read_records(header, data)
    except CorruptLog:
        return False
    marker = decode_marker(records[0]) if records else None
    return marker is not None and marker.type is ControlType.ABORT
