"""The log of a partition that a client asks for, if this broker leads it in the epoch that the client believes in.

There is one broker and nobody is ever elected anew, so a partition keeps the epoch of the last leader that wrote to it;
a directory that another broker has left may begin with any.
"""

from typing import NamedTuple
from uuid import UUID

from kohort.broker.topics import Topics
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition
from kohort.log.partition import Log
from kohort.records.batch import NO_LEADER_EPOCH


class UnknownTopicOrPartition(ClientError):
    """There is no such partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicId(ClientError):
    """There is no topic with this id."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class InconsistentTopicId(ClientError):
    """The topic of that name is another one than the client knew: it was deleted and made anew."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class UnknownLeaderEpoch(ClientError):
    """The client has heard of a leader that we have not."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class FencedLeaderEpoch(ClientError):
    """The client believes in a leader that is no more."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class EpochEnd(NamedTuple):
    """An epoch and the offset behind what was written in it."""

    epoch: int
    offset: int


NO_EPOCH_END = EpochEnd(NO_LEADER_EPOCH, -1)


def leader_epoch(log: Log) -> int:
    """The epoch in which this broker leads a partition."""
    return max(log.leader_epochs.latest, 0)


def led_log(topics: Topics, partition: TopicPartition, epoch: int = NO_LEADER_EPOCH) -> Log:
    """The log, or the refusal that fits; an epoch below 0 is none."""
    log = topics.log(*partition)
    if log is None:
        failure = topics.directory.failed.get(partition)
        if failure is not None:
            raise StorageFailed(f"{partition} is not available: {failure}")
        raise UnknownTopicOrPartition(f"there is no {partition}")
    current = leader_epoch(log)
    if 0 <= epoch < current:
        raise FencedLeaderEpoch(f"{partition} is led in epoch {current}, not {epoch}")
    if epoch > current:
        raise UnknownLeaderEpoch(f"{partition} is led in epoch {current}, not {epoch} yet")
    return log


def check_topic_id(topics: Topics, name: str, topic_id: UUID) -> None:
    """`InconsistentTopicId` if the topic that has this name has another id. One that there is not has none."""
    topic = topics.get(name)
    if topic is not None and topic.topic_id != topic_id:
        raise InconsistentTopicId(f"topic {name} has the id {topic.topic_id}, not {topic_id}")


def end_of_epoch(log: Log, epoch: int) -> EpochEnd:
    """Where an epoch ended, or the last one before it; this is how a client finds out whether a log was cut (KIP-320).

    The current epoch ends at the log end, one that came before all that are known at the first offset that is left.
    """
    if epoch == leader_epoch(log):
        return EpochEnd(epoch, log.log_end_offset)
    entries = log.leader_epochs.entries
    later = [entry for entry in entries if entry.epoch > epoch]
    if epoch < 0 or not later:
        return NO_EPOCH_END
    earlier = [entry.epoch for entry in entries if entry.epoch <= epoch]
    return EpochEnd(earlier[-1] if earlier else epoch, later[0].start_offset)
