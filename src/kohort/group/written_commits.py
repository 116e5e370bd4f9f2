"""Commits that came as bytes and go to the log as bytes.

Most commits are never looked at: the next one of the same member takes their place. So those that a client's request
was turned into without being read value by value are opened only when somebody asks for one of them.
"""

from collections.abc import Iterator, Mapping

from kohort.log.names import TopicPartition
from kohort.records.batch import read_batch
from kohort.records.finished_batch import FinishedBatch
from kohort.records.offsets_topic import OffsetCommitValue, OffsetKey, decode_key, decode_value


class WrittenCommits(Mapping[TopicPartition, OffsetCommitValue]):
    """The commits in a batch that is about to be written; no partition occurs twice."""

    __slots__ = ("_values", "batch", "shape")

    def __init__(self, batch: FinishedBatch, shape: bytes) -> None:
        self.batch = batch
        self.shape = shape
        """Which partitions these are, in which order: commits of the same shape replace each other as a whole."""
        self._values: dict[TopicPartition, OffsetCommitValue] | None = None

    def __len__(self) -> int:
        return self.batch.record_count

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._opened())

    def __getitem__(self, partition: TopicPartition) -> OffsetCommitValue:
        return self._opened()[partition]

    def _opened(self) -> dict[TopicPartition, OffsetCommitValue]:
        if self._values is None:
            values = {}
            for record in read_batch(bytes(self.batch.data)).records:
                key = decode_key(record.key)
                value = decode_value(key, record.value)
                assert isinstance(key, OffsetKey)
                assert isinstance(value, OffsetCommitValue)
                values[TopicPartition(key.topic, key.partition)] = value
            self._values = values
        return self._values
