"""The cluster whose groups are to get other offsets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kohort.admin.cluster import Cluster
from kohort.admin.groups import AT_REST, describe_groups
from kohort.admin.offsets import commit, committed_offsets, log_offsets
from kohort.log.cluster import EARLIEST, LATEST, TopicPartition
from kohort.log.security import Security
from kohort.spark.restore_plan import Bounds, Planned, by_group


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group as a cluster has it."""

    state: str
    members: int
    offsets: Mapping[TopicPartition, int]

    @property
    def is_at_rest(self) -> bool:
        return self.state in AT_REST


class Target:
    """A connection to a cluster; close it."""

    def __init__(self, bootstrap: str, security: Security | None = None) -> None:
        self._cluster = Cluster(bootstrap, security)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def groups(self, names: Iterable[str]) -> dict[str, GroupNow]:
        """What groups are there now; one that is not there is `Dead` and has no offsets."""
        described = describe_groups(self._cluster, names)
        offsets = committed_offsets(self._cluster, described)
        return {
            name: GroupNow(group.state, len(group.members), {key: value.offset for key, value in offsets[name].items()})
            for name, group in described.items()
        }

    def bounds(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Where the logs of topic partitions begin and end; those that the cluster does not have are left out."""
        asked = set(topic_partitions)
        starts, ends = (log_offsets(self._cluster, asked, time) for time in (EARLIEST, LATEST))
        for (topic, partition), reason in (starts.refused | ends.refused).items():
            if (topic, partition) not in starts.missing | ends.missing:
                raise self._cluster.failure(f"{topic}-{partition}: {reason}")
        return {key: Bounds(start, ends.found[key]) for key, start in starts.found.items() if key in ends.found}

    def commit(self, plan: Iterable[Planned]) -> list[tuple[Planned, str]]:
        """Set the offsets of a plan; those that the cluster refused come back, each with the reason."""
        planned = list(plan)
        refused = commit(self._cluster, by_group(planned))
        reasons = [(one, refused.get((one.group, (one.topic, one.partition)))) for one in planned]
        return [(one, reason) for one, reason in reasons if reason is not None]
