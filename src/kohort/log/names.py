"""Names on disk: Kafka's, so that either broker opens what the other wrote.

A partition `orders-3` is a directory `orders-3`; in it a segment is a run of files named after its first offset in
twenty digits. A suffix behind the whole name tells what a file is waiting for: `.cleaned` (being written by the
cleaner), `.swap` (finished, about to take its place), `.deleted` (out of use, about to be removed).
"""

import re
from typing import NamedTuple

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
FLUSHED_OFFSET = "flushed-offset"

INDEX_SUFFIXES = (INDEX, TIME_INDEX, TXN_INDEX)

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_OFFSET_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted)?")
_PARTITION = re.compile(r"0|[1-9]\d{0,9}")
_DELETED_DIRECTORY = re.compile(r".*-\d+\.[0-9a-f]{32}-delete")
_MAX_NAME = 255


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetFile(NamedTuple):
    """A file named after an offset, taken apart; `state` is empty for a file in use."""

    offset: int
    kind: str
    state: str = ""


def offset_file(offset: int, kind: str, state: str = "") -> str:
    return f"{offset:020d}{kind}{state}"


def parse_offset_file(name: str) -> OffsetFile | None:
    match = _OFFSET_FILE.fullmatch(name)
    return OffsetFile(int(match[1]), match[2], match[3] or "") if match else None


def is_topic_name(name: str) -> bool:
    return name not in (".", "..") and _TOPIC.fullmatch(name) is not None


def parse_partition_directory(name: str) -> TopicPartition | None:
    """The partition that lives in a directory of this name; the number stands behind the last dash."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not is_topic_name(topic) or not _PARTITION.fullmatch(partition) or int(partition) >= 1 << 31:
        return None
    return TopicPartition(topic, int(partition))


def deleted_directory(topic_partition: TopicPartition, unique_id: str) -> str:
    """Where a deleted partition waits for its removal. A long topic name is cut so that the whole stays a file name."""
    suffix = f"-{topic_partition.partition}.{unique_id}-delete"
    return topic_partition.topic[: _MAX_NAME - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    return _DELETED_DIRECTORY.fullmatch(name) is not None
