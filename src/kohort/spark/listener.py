"""Spark's progress as the offsets of a consumer group, so that every Kafka tool sees how far behind a query is.

Structured Streaming keeps what it has read in its own checkpoint and commits nothing. This listener hears of each
batch that is done and commits the ends of its Kafka sources. The checkpoint stays what counts: nobody reads from the
group. Commits are made in the background, the latest one first of all, and a cluster that is away does not hold up the
query.
"""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from kohort.errors import KohortError
from kohort.log.cluster import TopicPartition
from kohort.log.security import Security, parse_security
from kohort.spark.restore_plan import Planned
from kohort.spark.restore_target import Target

_LOG = logging.getLogger(__name__)
_KAFKA_SOURCE = "KafkaV2["
_METADATA = "spark"


class OffsetCommitListener(StreamingQueryListener):
    """`spark.streams.addListener(OffsetCommitListener("localhost:9092", "my-query"))`.

    `group` is the group of all queries, or says which group the query of a name has: None if it has none. `kafka` has
    the settings that it takes to get into the cluster, under Kafka's names. Close it when the queries have ended.
    """

    def __init__(
        self, bootstrap: str, group: str | Callable[[str | None], str | None], kafka: Mapping[str, str] | None = None
    ) -> None:
        self._bootstrap = bootstrap
        self._security = parse_security(kafka or {})
        self._group_of = group if callable(group) else lambda _: group
        self._committer = _Committer(bootstrap, self._security)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Nothing has been read yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        group = self._group_of(event.progress.name)
        if group is None:
            return
        found: dict[TopicPartition, int] = {}
        for source in event.progress.sources:
            found |= end_offsets(source.description, source.endOffset)
        self._committer.put(group, found)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """What was read is committed already."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """What was read is committed already, or will be."""

    def close(self) -> None:
        """Commit what is left."""
        self._committer.close()


def end_offsets(description: str, told: str | None) -> dict[TopicPartition, int]:
    """The offsets behind a batch, as Spark's Kafka source tells them: {"topic": {"0": 12}}. Other sources have none."""
    if told is None or not description.startswith(_KAFKA_SOURCE):
        return {}
    offsets: dict[str, dict[str, int]] = json.loads(told)
    return {(topic, int(partition)): end for topic, ends in offsets.items() for partition, end in ends.items()}


class _Committer:
    """Commits in a thread of its own; of what waits, only the latest of each partition."""

    def __init__(self, bootstrap: str, security: Security) -> None:
        self._bootstrap, self._security = bootstrap, security
        self._changed = threading.Condition()
        self._waiting: dict[tuple[str, TopicPartition], int] = {}
        self._committed: dict[tuple[str, TopicPartition], int] = {}
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="kohort-commits", daemon=True)
        self._thread.start()

    def put(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        with self._changed:
            for key, offset in offsets.items():
                if self._committed.get((group, key)) != offset:
                    self._waiting[group, key] = offset
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                taken, self._waiting = self._waiting, {}
            try:
                self._commit(taken)
            except KohortError as error:
                # A later batch brings these partitions again, with later offsets.
                _LOG.warning("the progress of Spark was not committed: %s", error)

    def _commit(self, taken: Mapping[tuple[str, TopicPartition], int]) -> None:
        plan = [Planned(group, *key, offset, _METADATA) for (group, key), offset in taken.items()]
        with Target(self._bootstrap, self._security) as target:
            refused = target.commit(plan)
        for planned, reason in refused:
            where = f"{planned.topic}-{planned.partition}"
            _LOG.warning("the progress of Spark in %s was not committed for %s: %s", where, planned.group, reason)
        refusals = {(planned.group, (planned.topic, planned.partition)) for planned, _ in refused}
        self._committed |= {key: offset for key, offset in taken.items() if key not in refusals}
