"""Fetch (1): read logs, or wait until there is something to read.

4 isolation levels (KIP-98) · 5 the log start · 7 sessions (KIP-227) · 9 leader epochs (KIP-320) · 10 zstd (KIP-110) ·
11 other replicas to read from, of which there are none (KIP-392) · 12 flexible, the epoch that was read last (KIP-595)
· 13 topics by their ids (KIP-516) · 14 records on other disks, of which there are none (KIP-405) · 15 the epoch of a
follower (KIP-903) · 16 who leads instead (KIP-951) · 17, 18 what followers tell of themselves
"""

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, cast

from kohort.broker.api import api
from kohort.broker.api.replicas import refused_topics
from kohort.broker.fetch_sessions import FINAL_EPOCH, NO_SESSION, FetchKey, Found, TopicIdPartition, Wanted
from kohort.broker.fetch_waiting import Fetch, Results, log_of, topic_of
from kohort.broker.leading import leader_epoch
from kohort.broker.security.permission import CLUSTER_ACTION, READ_TOPIC
from kohort.errors import ErrorCode
from kohort.log.answers import ReadUpTo
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from uuid import UUID

    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.quotas.metered_call import MeteredCall

_READ_COMMITTED = 1
_STORAGE_ERROR_FROM = 6
_IDS_FROM = 13


@api(1, 4, 18, permissions=(READ_TOPIC, CLUSTER_ACTION))
def fetch(broker: "Broker", call: "Call") -> None:
    request = call.request
    wanted: dict[FetchKey, Wanted] = {}
    forgotten: list[FetchKey] = []
    name_of: Callable[[UUID], str | None] | None = None
    if call.version < _IDS_FROM:
        for topic in request.topics:
            for partition in topic.partitions:
                wanted[TopicPartition(topic.topic, partition.partition)] = _wanted(partition)
        for topic in getattr(request, "forgotten_topics_data", ()):
            forgotten += [TopicPartition(topic.topic, partition) for partition in topic.partitions]
    else:
        name_of = broker.topics.name_of
        for topic in request.topics:
            name = name_of(topic.topic_id)
            for partition in topic.partitions:
                wanted[TopicIdPartition(topic.topic_id, partition.partition)] = _wanted(partition, name)
        for topic in request.forgotten_topics_data:
            forgotten += [TopicIdPartition(topic.topic_id, partition) for partition in topic.partitions]
    context = broker.fetch_sessions.open(
        getattr(request, "session_id", NO_SESSION),
        getattr(request, "session_epoch", FINAL_EPOCH),
        wanted,
        forgotten,
        name_of=name_of,
    )

    def answer(results: Results) -> None:
        if call.is_metered and cast("MeteredCall", call).is_too_much(sum(len(one.records) for one in results.values())):
            error, session_id, found = context.answer_nothing()
        else:
            error, session_id, found = context.answer(results)
        by_topic: dict[str | UUID, list[dict[str, Any]]] = {}
        for key, what in found.items():
            told = _told(key.partition, what, call.version)
            if what.error is ErrorCode.FENCED_LEADER_EPOCH:
                told["current_leader"] = _leader(broker, key, context.wanted[key])
            by_topic.setdefault(key[0], []).append(told)
        named = "topic" if name_of is None else "topic_id"
        responses = [{named: topic, "partitions": partitions} for topic, partitions in by_topic.items()]
        has_leaders = any("current_leader" in told for partitions in by_topic.values() for told in partitions)
        endpoints = [broker.node_for(call)] if has_leaders else None
        call.answer(
            {"error_code": error, "session_id": session_id, "responses": responses, "node_endpoints": endpoints}
        )

    def find_refused() -> Container[str | None]:
        names = {topic_of(key, what) for key, what in context.wanted.items()}
        return refused_topics(call, _replica_id(request), READ_TOPIC, names)

    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    if call.is_metered:
        max_bytes = min(max_bytes, cast("MeteredCall", call).most_to_fetch)
    broker.long_polls.fetch(
        Fetch(
            wanted=context.wanted,
            max_wait_ms=request.max_wait,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            up_to=ReadUpTo.LAST_STABLE_OFFSET
            if request.isolation_level == _READ_COMMITTED
            else ReadUpTo.HIGH_WATERMARK,
            find_refused=None if call.authorizer is None else find_refused,
        ),
        answer,
    )


def _replica_id(request: Any) -> int:
    replica_id: int = request.replica_state.replica_id if hasattr(request, "replica_state") else request.replica_id
    return replica_id


def _wanted(partition: Any, topic: str | None = None) -> Wanted:
    return Wanted(
        partition.fetch_offset,
        partition.partition_max_bytes,
        getattr(partition, "current_leader_epoch", NO_LEADER_EPOCH),
        getattr(partition, "last_fetched_epoch", NO_LEADER_EPOCH),
        topic,
    )


def _told(index: int, found: Found, version: int) -> dict[str, Any]:
    """Records are never null, also beside an error: librdkafka could not read that (KAFKA-18646)."""
    error = found.error
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_FROM:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return {
        "partition_index": index,
        "error_code": error,
        "high_watermark": found.high_watermark,
        "last_stable_offset": found.last_stable_offset,
        "log_start_offset": found.log_start_offset,
        "aborted_transactions": None if found.aborted is None else [one._asdict() for one in found.aborted],
        "diverging_epoch": None
        if found.diverging is None
        else {"epoch": found.diverging.epoch, "end_offset": found.diverging.offset},
        "records": found.records,
    }


def _leader(broker: "Broker", key: FetchKey, wanted: Wanted) -> dict[str, int]:
    """For a reader that believes in an earlier one."""
    log = log_of(broker.topics, key, wanted)
    return {"leader_id": broker.config.broker_id, "leader_epoch": NO_LEADER_EPOCH if log is None else leader_epoch(log)}
