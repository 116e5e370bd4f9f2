"""What keeps the broker from doing its work, if anything does."""

from collections.abc import Mapping

from kohort.broker.broker import Broker
from kohort.broker.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC
from kohort.errors import KohortError
from kohort.log.names import TopicPartition


def problems(broker: Broker) -> list[str]:
    """Why it cannot be relied on: the disk has failed, or a coordinator has not got all of its partitions."""
    found = []
    if broker.flusher.failure is not None:
        found.append(f"the disk failed: {broker.flusher.failure}")
    for partition, log in broker.topics.directory.logs.items():
        if log.failure is not None:
            found.append(f"{partition}: the disk failed: {log.failure}")
    for topic, failed in (
        (OFFSETS_TOPIC, broker.groups.manager.failed_loads),
        (TRANSACTION_TOPIC, broker.transactions.manager.failed_loads),
    ):
        found += _not_coordinated(broker, topic, failed)
    return found


def offline_partitions(broker: Broker) -> dict[str, str]:
    """Partitions of data that could not be opened, and why. All others are served."""
    directory = broker.topics.directory
    reasons: dict[str, str] = {}
    for topic in broker.topics:
        for number in range(topic.partition_count):
            partition = TopicPartition(topic.name, number)
            if topic.name not in INTERNAL_TOPICS and partition not in directory.logs:
                reasons[str(partition)] = _reason(directory.failed, partition)
    return reasons


def _not_coordinated(broker: Broker, name: str, failed_loads: Mapping[int, KohortError]) -> list[str]:
    topic, directory = broker.topics.get(name), broker.topics.directory
    found = []
    for number in range(0 if topic is None else topic.partition_count):
        partition = TopicPartition(name, number)
        if partition not in directory.logs:
            found.append(f"{partition} could not be loaded: {_reason(directory.failed, partition)}")
        elif number in failed_loads:
            found.append(f"{partition} could not be loaded: {failed_loads[number]}")
    return found


def _reason(failed: Mapping[TopicPartition, KohortError], partition: TopicPartition) -> str:
    return str(failed.get(partition, "its directory is not there"))
