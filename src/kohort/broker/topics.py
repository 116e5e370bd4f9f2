"""The topics of this broker: which there are, their partitions, their settings.

They stand in `topics.json` (see `topics_file.py`), which is always written first and tells what is under way: a topic
whose partitions are not all made, or that is being deleted. What a crash leaves half done is finished at the next
start. A partition that was made and is not there any more is missing, and stays so: an empty one in its place would
look as if nothing had ever been in it. Directories that the file does not tell of, written by another broker, are
topics all the same.

Partitions are made in one go, or begun here, made in another thread and finished here. Until then nobody sees a new
topic, and its name is taken.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from uuid import UUID, uuid4

from kohort.broker.new_partitions import MakingStopped, NewPartitions
from kohort.broker.storage import Storage
from kohort.broker.topics_file import (
    INTERNAL_TOPICS,
    MOST_PARTITIONS,
    OFFSETS_TOPIC,
    SECURITY_TOPIC,
    TRANSACTION_TOPIC,
    Topic,
    TopicsFile,
    with_strangers,
)
from kohort.clock import Clock
from kohort.config import LogConfig
from kohort.errors import ClientError, CorruptLog, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition, is_topic_name
from kohort.log.partition import Log

__all__ = ["INTERNAL_TOPICS", "OFFSETS_TOPIC", "TRANSACTION_TOPIC", "InvalidTopic", "Topic", "TopicExists", "Topics"]

logger = logging.getLogger(__name__)

_SECURITY_SEGMENT_BYTES = 1 << 20
"""Small, for the cleaner leaves the last segment alone."""


class TopicExists(ClientError):
    """The name is taken."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidTopic(ClientError):
    """No topic can have this name, or none beside those that there are."""

    code = ErrorCode.INVALID_TOPIC


class Topics:
    """All topics, and the logs of their partitions."""

    def __init__(
        self, storage: Storage, clock: Clock, config_of: Callable[[str, Mapping[str, str]], LogConfig]
    ) -> None:
        self._config_of = config_of
        self._file = TopicsFile(storage.documents)
        self._topics = self._file.read()
        self._names = _names_by_id(self._topics)
        self._making: dict[str, NewPartitions] = {}
        self._check_settings()
        self.directory = storage.open_directory(clock, self.config_of)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self.directory.close)
            if self._file.read() != self._topics:
                raise StorageFailed(f"{self._file.path} has changed while it was read")
            self._resume()
            on_failure.pop_all()

    def __iter__(self) -> Iterator[Topic]:
        return iter([topic for topic in self._topics.values() if topic.is_visible])

    def get(self, name: str) -> Topic | None:
        topic = self._topics.get(name)
        return topic if topic is not None and topic.is_visible else None

    def by_id(self, topic_id: UUID) -> Topic | None:
        name = self.name_of(topic_id)
        return None if name is None else self.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        """What the topic with this id is called, if there is one."""
        name = self._names.get(topic_id)
        return None if name is None or self.get(name) is None else name

    def log(self, name: str, partition: int) -> Log | None:
        """The log of a partition, if there is one and it could be opened."""
        topic = self._topics.get(name)
        if name == SECURITY_TOPIC or (topic is not None and topic.is_doomed):
            return None
        return self.directory.logs.get(TopicPartition(name, partition))

    @property
    def security_log(self) -> Log | None:
        """Where users and permissions are kept, if any ever were; `StorageFailed` if it is not there any more."""
        topic = self._topics.get(SECURITY_TOPIC)
        if topic is None or topic.is_doomed:
            return None
        where = TopicPartition(SECURITY_TOPIC, 0)
        log = self.directory.logs.get(where)
        if log is None:
            raise StorageFailed(f"{where} is not available: {self.directory.failed.get(where, 'it is missing')}")
        return log

    def create_security_log(self) -> Log:
        """Its first record is about to come."""
        if SECURITY_TOPIC in self._topics:
            self._finish_deletion(self._topics[SECURITY_TOPIC])
        settings = {"cleanup.policy": "compact", "segment.bytes": str(_SECURITY_SEGMENT_BYTES)}
        self.complete(self._begin(Topic(SECURITY_TOPIC, uuid4(), 1, 0, settings)))
        return self.directory.logs[TopicPartition(SECURITY_TOPIC, 0)]

    def config_of(self, name: str) -> LogConfig:
        topic = self._topics.get(name)
        return self._config_of(name, {} if topic is None else topic.settings)

    def check_new(self, name: str) -> None:
        """`InvalidTopic` or `TopicExists` if there can be no new topic of this name."""
        if not is_topic_name(name):
            raise InvalidTopic(
                f"{name!r} is no name for a topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'; not . or .."
            )
        if name == SECURITY_TOPIC:
            raise InvalidTopic(f"topic '{name}' is the broker's own")
        taken = [topic for topic in self._topics.values() if not topic.is_doomed]
        if any(topic.name == name for topic in taken):
            raise TopicExists(f"topic '{name}' exists already")
        for topic in taken:
            if _metric_name(topic.name) == _metric_name(name):
                raise InvalidTopic(
                    f"topic '{name}' collides with topic '{topic.name}': they differ in '.' and '_' only"
                )

    def check_config(self, name: str, settings: Mapping[str, str]) -> LogConfig:
        """What the settings would mean for the topic; `BadSetting` if they cannot be."""
        return self._config_of(name, settings)

    def create(self, name: str, partitions: int, settings: Mapping[str, str]) -> Topic:
        """A new topic. If the disk fails, there is none."""
        return self.complete(self.begin_creation(name, partitions, settings))

    def add_partitions(self, topic: Topic, count: int) -> Topic:
        """Up to `count` partitions. If the disk fails there are as many as could be made, and the rest later."""
        return self.complete(self.begin_growth(topic, count))

    def begin_creation(self, name: str, partitions: int, settings: Mapping[str, str]) -> NewPartitions:
        """What is to be made of a new topic. It has to be finished, or given up."""
        self.check_new(name)
        self.check_config(name, settings)
        if not 0 < partitions <= MOST_PARTITIONS:
            raise ValueError(f"{partitions} partitions")
        if name in self._topics:
            self._finish_deletion(self._topics[name])
        return self._begin(Topic(name, uuid4(), partitions, 0, dict(settings)))

    def begin_growth(self, topic: Topic, count: int) -> NewPartitions:
        """What is to be made for a topic to have `count` partitions; one that is growing has to be waited for."""
        if not topic.partition_count < count <= MOST_PARTITIONS or topic.name in self._making:
            raise ValueError(f"{topic.name} has {topic.partition_count} partitions, not {count}")
        return self._begin(replace(topic, partition_count=count))

    def _begin(self, topic: Topic) -> NewPartitions:
        self._change(topic)
        new = self._making[topic.name] = self._new_partitions(topic)
        return new

    def complete(self, new: NewPartitions) -> Topic:
        """Make what is left to be made, and finish."""
        try:
            new.make()
        except StorageFailed:
            self.give_up(new)
            raise
        return self.finish(new)

    def finish(self, new: NewPartitions) -> Topic:
        """All is made: the partitions are there for everybody. `MakingStopped` if the topic was deleted meanwhile."""
        name = new.topic.name
        current = self._topics.get(name)
        if current is None or current.topic_id != new.topic.topic_id:
            raise MakingStopped(f"topic {name} was deleted while it was made")
        if self._making.get(name) is new:
            del self._making[name]
            self.directory.add_logs(new.logs)
            try:
                self._change(replace(current, made=current.partition_count))
            except StorageFailed:
                if new.is_topic_new:
                    self._undo_creation(current)
                raise
        return self._topics[name]

    def give_up(self, new: NewPartitions) -> None:
        """The disk has failed. Of a new topic nothing stays; one that grew keeps what there is."""
        new.stop()
        if self._making.get(new.topic.name) is new:
            del self._making[new.topic.name]
            self.directory.add_logs(new.logs)
            if new.is_topic_new:
                self._undo_creation(new.topic)

    def under_way(self, name: str) -> NewPartitions | None:
        """The partitions of this topic that are being made."""
        return self._making.get(name)

    def stop_making(self) -> None:
        """Whatever is under way is made at the next start."""
        for new in self._making.values():
            new.abandon()
        self._making.clear()

    def delete(self, topic: Topic) -> None:
        """It is gone at once. If the disk fails its files are removed at the next start."""
        if (new := self._making.pop(topic.name, None)) is not None:
            new.stop()
            self.directory.add_logs(new.logs)
        doomed = replace(topic, is_doomed=True)
        self._change(doomed)
        self._finish_deletion(doomed)

    def change_settings(self, topic: Topic, settings: Mapping[str, str]) -> Topic:
        """Its logs follow from now on."""
        config = self.check_config(topic.name, settings)
        changed = replace(topic, settings=dict(settings))
        self._change(changed)
        self._configure(changed, config)
        return changed

    def refresh_configs(self) -> None:
        """The broker's settings are others now: all logs follow."""
        for topic in self._topics.values():
            self._configure(topic, self.config_of(topic.name))

    def _configure(self, topic: Topic, config: LogConfig) -> None:
        for partition in range(topic.partition_count):
            log = self.directory.logs.get(TopicPartition(topic.name, partition))
            if log is not None:
                log.config = config

    def _change(self, topic: Topic) -> None:
        self._write({**self._topics, topic.name: topic})

    def _write(self, topics: dict[str, Topic]) -> None:
        """The file first: what could not be written down has not happened."""
        self._file.write(topics.values())
        self._topics = topics
        self._names = _names_by_id(topics)

    def _new_partitions(self, topic: Topic) -> NewPartitions:
        known = self.directory.logs.keys() | self.directory.failed.keys()
        numbers = range(topic.made, topic.partition_count)
        missing = [where for number in numbers if (where := TopicPartition(topic.name, number)) not in known]
        return NewPartitions(topic, self.directory, self.config_of(topic.name), missing)

    def _undo_creation(self, topic: Topic) -> None:
        """Nobody was told that it exists, and nobody sees it; a disk that fails now is asked again later."""
        doomed = replace(topic, is_doomed=True)
        self._topics = {**self._topics, topic.name: doomed}
        try:
            self._change(doomed)
            self._finish_deletion(doomed)
        except StorageFailed as failure:
            logger.error("what was made of topic %s stays for now: %s", topic.name, failure)

    def _finish_deletion(self, doomed: Topic) -> None:
        """Its partitions, as far as they are there, then its name."""
        partitions = [TopicPartition(doomed.name, number) for number in range(doomed.partition_count)]
        known = self.directory.logs.keys() | self.directory.failed.keys()
        self.directory.delete_logs([partition for partition in partitions if partition in known])
        self.directory.set_aside([partition for partition in partitions if partition not in known])
        self._write({name: topic for name, topic in self._topics.items() if name != doomed.name})

    def _resume(self) -> None:
        """Finish what was half done, and take in what another broker left here."""
        for topic in list(self._topics.values()):
            if topic.is_doomed:
                self._finish_deletion(topic)
            elif topic.made < topic.partition_count:
                new = self._making[topic.name] = self._new_partitions(topic)
                self.complete(new)
        adopted = with_strangers(self._topics, [*self.directory.logs, *self.directory.failed])
        if adopted != self._topics or not self._file.is_there:
            self._write(adopted)
        for topic in self:
            for number in range(topic.partition_count):
                partition = TopicPartition(topic.name, number)
                if partition not in self.directory.logs and partition not in self.directory.failed:
                    logger.error("%s is missing: its directory is not there", partition)

    def _check_settings(self) -> None:
        for topic in self._topics.values():
            try:
                self.check_config(topic.name, topic.settings)
            except ClientError as error:
                raise CorruptLog(f"the settings of topic {topic.name}: {error}", path=self._file.path) from error


def _names_by_id(topics: Mapping[str, Topic]) -> dict[UUID, str]:
    return {topic.topic_id: topic.name for topic in topics.values()}


def _metric_name(name: str) -> str:
    """Two topics may not have the same: Kafka's metrics write one for the other."""
    return name.replace(".", "_")
