"""`topics.json`: what the data directory's topics are called, their ids, partitions and settings.

It is replaced as a whole, so a crash leaves the old content or the new. A file that is not what we write is refused:
whoever changed it by hand is told where, and nothing is guessed.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from kohort.errors import CorruptLog
from kohort.log.documents import Documents
from kohort.log.names import TopicPartition, is_topic_name

logger = logging.getLogger(__name__)

NAME = "topics.json"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SECURITY_TOPIC = "__kohort_security"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC})
MOST_PARTITIONS = 100_000
"""Of one topic: every one of them is told in every answer about it."""

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic. Its settings are those that differ from the broker's, under Kafka's names."""

    name: str
    topic_id: UUID
    partition_count: int
    made: int
    """Partitions from this one on are still to be made."""
    settings: dict[str, str] = field(default_factory=dict)
    is_doomed: bool = False
    """Being deleted: nobody sees it any more."""

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def is_visible(self) -> bool:
        """Neither about to go nor about to come, nor the broker's own affair."""
        return self.made > 0 and not self.is_doomed and self.name != SECURITY_TOPIC


class TopicsFile:
    """Where topics are written down."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.path = documents.place(NAME)

    @property
    def is_there(self) -> bool:
        return self._documents.read(NAME) is not None

    def read(self) -> dict[str, Topic]:
        """Every topic by its name; none if there is no file. `CorruptLog` if it is not one that we wrote."""
        data = self._documents.read(NAME)
        if data is None:
            return {}
        try:
            told = json.loads(data, object_pairs_hook=_without_twins)
        except (ValueError, RecursionError) as error:
            raise self._damage(f"it is not JSON: {error}") from error
        if not isinstance(told, dict) or told.get("version") != _VERSION or not isinstance(told.get("topics"), dict):
            raise self._damage(f"it does not tell of topics as version {_VERSION} does")
        topics = {name: self._topic(name, entry) for name, entry in told["topics"].items()}
        if len({topic.topic_id for topic in topics.values()}) < len(topics):
            raise self._damage("two topics have the same id")
        return topics

    def write(self, topics: Iterable[Topic]) -> None:
        """Durable when it returns."""
        told = {
            topic.name: {
                "id": str(topic.topic_id),
                "partitions": topic.partition_count,
                "made": topic.made,
                "settings": topic.settings,
                "doomed": topic.is_doomed,
            }
            for topic in topics
        }
        self._documents.write(NAME, json.dumps({"version": _VERSION, "topics": told}, indent=1).encode())

    def _topic(self, name: str, entry: Any) -> Topic:
        if not is_topic_name(name):
            raise self._damage(f"{name!r} is no name for a topic")
        if not isinstance(entry, dict):
            raise self._damage(f"nothing is told of topic {name}")
        count, made, settings = entry.get("partitions"), entry.get("made"), entry.get("settings")
        if type(count) is not int or type(made) is not int or not 0 <= made <= count <= MOST_PARTITIONS or not count:
            raise self._damage(f"topic {name} has {count!r} partitions, of which {made!r} are made")
        if not isinstance(settings, dict) or not all(isinstance(text, str) for text in settings.values()):
            raise self._damage(f"the settings of topic {name} are {settings!r}")
        if type(entry.get("doomed")) is not bool:
            raise self._damage(f"topic {name} is doomed or not: {entry.get('doomed')!r}")
        try:
            topic_id = UUID(entry["id"])
        except (KeyError, ValueError, AttributeError, TypeError):
            raise self._damage(f"the id of topic {name} is {entry.get('id')!r}") from None
        return Topic(name, topic_id, count, made, settings, entry["doomed"])

    def _damage(self, reason: str) -> CorruptLog:
        return CorruptLog(reason, path=self.path)


def with_strangers(topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]) -> dict[str, Topic]:
    """These topics, and those that only their partitions tell of: another broker has left them."""
    known = dict(topics)
    for name, number in partitions:
        if number >= MOST_PARTITIONS:
            logger.warning("%s-%s is not taken for a partition: its number is too high", name, number)
            continue
        topic = known.get(name) or Topic(name, uuid4(), 0, 0, {})
        count = max(topic.partition_count, number + 1)
        known[name] = replace(topic, partition_count=count, made=count)
    return known


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands in it twice")
    return values
