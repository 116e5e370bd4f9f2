"""Partitions by topic, as nearly every API asks for them and answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition


def topic_partitions(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Every partition of a request, with what is said of it."""
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition


def answer_by_topic(topics: Iterable[Any], errors: Mapping[TopicPartition, ErrorCode]) -> list[dict[str, Any]]:
    """An error for each partition, in the order of the request.

    As in Kafka a topic or a partition that is named twice is answered once, a topic without partitions not at all.
    """
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for partition in dict.fromkeys(partition for partition, _ in topic_partitions(topics)):
        told = {"partition_index": partition.partition, "error_code": errors[partition]}
        by_topic.setdefault(partition.topic, []).append(told)
    return [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()]
