"""Offsets that groups have committed, and where the logs begin and end that they point into."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kohort.admin.cluster import Cluster, all_of
from kohort.admin.messages import LIST_OFFSETS, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
from kohort.admin.refusals import in_words, named
from kohort.errors import ErrorCode
from kohort.log.cluster import PASSING, TopicPartition

_NOBODY = -1
_READ_UNCOMMITTED = 0
_NOT_COMMITTED = -1

T = TypeVar("T")


class Offset(NamedTuple):
    """An offset as a group has it."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = dict[TopicPartition, Offset]


class LogOffsets(NamedTuple):
    """Offsets of logs, and why there is none of some."""

    found: dict[TopicPartition, int]
    refused: dict[TopicPartition, str]
    missing: set[TopicPartition]
    """Those of the refused that the cluster does not have."""


def committed_offsets(cluster: Cluster, groups: Iterable[str]) -> dict[str, Offsets]:
    """All offsets of groups."""
    return dict(cluster.run(all_of(partial(_committed, cluster, group) for group in dict.fromkeys(groups))))


def log_offsets(cluster: Cluster, asked: Iterable[TopicPartition], time: int) -> LogOffsets:
    """The first offset of partitions at or after a time in milliseconds, or `EARLIEST`, or `LATEST`.

    As Kafka answers: -1 if nothing in the log is that late.
    """
    return cluster.run(log_offsets_of(cluster, sorted(set(asked)), time))


def commit(cluster: Cluster, plan: Mapping[str, Offsets]) -> dict[tuple[str, TopicPartition], str]:
    """Set offsets of groups that have no members; those that were refused come back, each with the reason."""
    told = cluster.run(all_of(partial(_commit, cluster, group, offsets) for group, offsets in plan.items()))
    return {(group, key): reason for group, refused in told for key, reason in refused.items()}


def delete_offsets(cluster: Cluster, group: str, asked: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
    """Have a group forget offsets; those that were refused come back, each with the reason."""
    return cluster.run(_delete(cluster, group, sorted(set(asked))))


async def _committed(cluster: Cluster, group: str) -> tuple[str, Offsets]:
    answer = await cluster.ask_coordinator(
        group, OFFSET_FETCH, lambda told: [told.error_code], group_id=group, topics=None, require_stable=False
    )
    if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return group, {}
    cluster.refuse(answer.error_code, f"group {named(group)}")
    offsets: Offsets = {}
    for topic in answer.topics:
        for told in topic.partitions:
            cluster.refuse(told.error_code, f"group {named(group)}, {topic.name}-{told.partition_index}")
            if told.committed_offset != _NOT_COMMITTED:
                epoch = getattr(told, "committed_leader_epoch", -1)
                offsets[topic.name, told.partition_index] = Offset(told.committed_offset, epoch, told.metadata or "")
    return group, offsets


async def log_offsets_of(cluster: Cluster, asked: list[TopicPartition], time: int) -> LogOffsets:
    """`log_offsets`, for whoever is on the loop. Those whose leader is elsewhere by now are asked for again."""
    from aiokafka.errors import NodeNotReadyError

    partitions = {topic: set(cluster.partitions_of(topic)) for topic in {topic for topic, _ in asked}}
    missing = {(topic, number) for topic, number in asked if number not in partitions[topic]}
    told = LogOffsets({}, dict.fromkeys(missing, in_words(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), missing)
    deadline = cluster.deadline()
    while left := [key for key in asked if key not in told.found and key not in told.refused]:
        reasons = dict.fromkeys(left, "has no leader")
        by_leader: dict[int, list[TopicPartition]] = {}
        for key in left:
            if (leader := cluster.leader(*key)) is not None:
                by_leader.setdefault(leader, []).append(key)
        for leader, theirs in by_leader.items():
            try:
                answer = await _listed(cluster, leader, theirs, time)
            except NodeNotReadyError:
                reasons.update(dict.fromkeys(theirs, f"broker {leader} does not answer"))
                continue
            for key, (error, offset) in answer.items():
                if not error:
                    told.found[key] = offset
                elif error in PASSING:
                    reasons[key] = in_words(error)
                else:
                    told.refused[key] = in_words(error)
                    if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        told.missing.add(key)
        if cluster.now() > deadline:
            told.refused.update({key: reasons[key] for key in left if key not in told.found})
        elif any(key not in told.found and key not in told.refused for key in left):
            await cluster.pause()
            await cluster.look_again()
    return told


async def _listed(
    cluster: Cluster, leader: int, asked: list[TopicPartition], time: int
) -> dict[TopicPartition, tuple[int, int]]:
    topics = _by_topic((key, {"partition_index": key[1], "timestamp": time}) for key in asked)
    answer = await cluster.ask(
        leader, LIST_OFFSETS, replica_id=_NOBODY, isolation_level=_READ_UNCOMMITTED, topics=topics
    )
    return {
        (topic.name, told.partition_index): (told.error_code, told.offset)
        for topic in answer.topics
        for told in topic.partitions
    }


async def _commit(cluster: Cluster, group: str, offsets: Offsets) -> tuple[str, dict[TopicPartition, str]]:
    def asked(key: TopicPartition, offset: Offset) -> dict[str, Any]:
        return {
            "partition_index": key[1],
            "committed_offset": offset.offset,
            "committed_leader_epoch": offset.leader_epoch,
            "committed_metadata": offset.metadata,
        }

    topics = _by_topic((key, asked(key, offset)) for key, offset in offsets.items())
    answer = await cluster.ask_coordinator(
        group, OFFSET_COMMIT, _errors_of_partitions, group_id=group, member_id="", topics=topics
    )
    return group, _refused(answer)


async def _delete(cluster: Cluster, group: str, asked: list[TopicPartition]) -> dict[TopicPartition, str]:
    topics = _by_topic((key, {"partition_index": key[1]}) for key in asked)
    errors: Callable[[Any], list[int]] = lambda told: [told.error_code, *_errors_of_partitions(told)]  # noqa: E731
    answer = await cluster.ask_coordinator(group, OFFSET_DELETE, errors, group_id=group, topics=topics)
    if answer.error_code:
        return dict.fromkeys(asked, in_words(answer.error_code))
    return _refused(answer)


def _errors_of_partitions(answer: Any) -> list[int]:
    return [told.error_code for topic in answer.topics for told in topic.partitions]


def _refused(answer: Any) -> dict[TopicPartition, str]:
    return {
        (topic.name, told.partition_index): in_words(told.error_code)
        for topic in answer.topics
        for told in topic.partitions
        if told.error_code
    }


def _by_topic(entries: Iterable[tuple[TopicPartition, T]]) -> list[dict[str, Any]]:
    topics: dict[str, list[T]] = {}
    for (topic, _), entry in entries:
        topics.setdefault(topic, []).append(entry)
    return [{"name": topic, "partitions": partitions} for topic, partitions in topics.items()]
