"""A log directory as a source: kohort's own or that of any Kafka. It is only read, so whoever wrote it may be dead."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from kohort.admin.offsets import Offset, Offsets
from kohort.broker.topics_file import OFFSETS_TOPIC, TopicsFile
from kohort.log.checkpoints import LOG_START_OFFSET, read_offsets
from kohort.log.documents import FileDocuments
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition, parse_offset_file, parse_partition_directory
from kohort.log.place import LOCAL
from kohort.log.source import BadSource, OnDamage, OnProgress, replay_partition
from kohort.log.stored import StoredPartition, segments_in
from kohort.migration.source import NEVER_COPIED, Fate, SourceBatch, SourceTopic
from kohort.migration.transactions import Transactions, find_transactions

_EXPECTED = "expected a Kafka log directory or kafka://HOST:PORT"


class DirectorySource:
    """The partitions in a directory."""

    def __init__(self, path: str) -> None:
        self._path = os.path.normpath(path)
        try:
            names = LOCAL.names(path)
        except OSError as error:
            raise BadSource(f"{path}: {error.strerror}; {_EXPECTED}") from None
        found = {partition: name for name in names if (partition := parse_partition_directory(name)) is not None}
        self._directories = {
            partition: os.path.join(self._path, name)
            for partition, name in found.items()
            if LOCAL.is_directory(os.path.join(self._path, name))
        }
        if not self._directories:
            raise BadSource(f"{path}: there is no partition in it; {_EXPECTED}")
        self._starts = read_offsets(RealFiles(), os.path.join(self._path, LOG_START_OFFSET))

    @property
    def size(self) -> int:
        return sum(
            self._stored(partition).size for partition in self._directories if partition.topic not in NEVER_COPIED
        )

    def topics(self) -> dict[str, SourceTopic]:
        """What kohort's `topics.json` says; of a directory of Kafka's, what its partitions show."""
        here: dict[str, list[int]] = {}
        for partition in sorted(self._directories):
            here.setdefault(partition.topic, []).append(partition.partition)
        told = TopicsFile(FileDocuments(RealFiles(), self._path)).read()
        found = {}
        for name, numbers in here.items():
            topic = told.get(name)
            if name in NEVER_COPIED or (topic is not None and topic.is_doomed):
                continue
            if topic is None:
                found[name] = SourceTopic(name, numbers[-1] + 1, tuple(numbers), None, is_count_sure=False)
            else:
                found[name] = SourceTopic(name, topic.partition_count, tuple(numbers), topic.settings)
        return found

    def partition(self, topic: str, number: int) -> "DirectoryPartition":
        where = TopicPartition(topic, number)
        stored = self._stored(where)
        found = find_transactions(stored.frames(lambda _: None, lambda _: None))
        file = parse_offset_file(os.path.basename(stored.segments[0])) if stored.segments else None
        first = file.offset if file is not None else 0
        start = max(first, self._starts.get(where, 0))
        found.log_end = max(found.log_end, start)
        return DirectoryPartition(stored, found, start)

    def groups(self, on_damage: OnDamage) -> dict[str, Offsets]:
        from kohort.records.finish import finish
        from kohort.records.replay import Rule

        logs = [self._stored(partition) for partition in sorted(self._directories) if partition.topic == OFFSETS_TOPIC]
        state = finish(replay_partition(log, Rule.POSITION, on_damage, lambda _: None) for log in logs)
        groups: dict[str, Offsets] = {}
        for key, committed in sorted(state.offsets.items()):
            value = committed.value
            groups.setdefault(key.group, {})[key.topic, key.partition] = Offset(
                value.offset, value.leader_epoch, value.metadata
            )
        return groups

    def _stored(self, partition: TopicPartition) -> StoredPartition:
        return StoredPartition(partition.partition, segments_in(LOCAL, self._directories[partition]))


@dataclass(frozen=True, slots=True)
class DirectoryPartition:
    """A partition in files."""

    stored: StoredPartition
    transactions: Transactions
    start: int

    @property
    def stable_end(self) -> int:
        return max(self.transactions.stable_end, self.start)

    @property
    def log_end(self) -> int:
        return self.transactions.log_end

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[SourceBatch]:
        for header, data in self.stored.frames(on_damage, on_progress):
            if header.last_offset >= self.stable_end:
                return
            if header.is_control:
                yield SourceBatch(header, data, Fate.CONTROL)
            elif self.transactions.is_aborted(header):
                yield SourceBatch(header, data, Fate.ABORTED)
            else:
                yield SourceBatch(header, data, Fate.DATA)
