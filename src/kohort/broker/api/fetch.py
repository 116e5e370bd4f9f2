"""Fetch (1): read logs, or wait until there is something to read.

4 isolation levels (KIP-98) · 5 the log start · 7 sessions (KIP-227) · 9 leader epochs (KIP-320) · 10 zstd (KIP-110) ·
11 other replicas to read from, of which there are none (KIP-392) · 12 flexible, the epoch that was read last (KIP-595)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.fetch_sessions import FINAL_EPOCH, NO_SESSION, Found, Wanted
from kohort.broker.fetch_waiting import Fetch, Results
from kohort.errors import ErrorCode
from kohort.log.answers import ReadUpTo
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_READ_COMMITTED = 1
_STORAGE_ERROR_FROM = 6


@api(1, 4, 12)
def fetch(broker: "Broker", call: "Call") -> None:
    request = call.request
    context = broker.fetch_sessions.open(
        getattr(request, "session_id", NO_SESSION),
        getattr(request, "session_epoch", FINAL_EPOCH),
        _wanted(request),
        [
            TopicPartition(topic.topic, partition)
            for topic in getattr(request, "forgotten_topics_data", ())
            for partition in topic.partitions
        ],
    )

    def answer(results: Results) -> None:
        error, session_id, found = context.answer(results)
        by_topic: dict[str, list[dict[str, Any]]] = {}
        for partition, what in found.items():
            by_topic.setdefault(partition.topic, []).append(_told(partition.partition, what, call.version))
        responses = [{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()]
        call.answer({"error_code": error, "session_id": session_id, "responses": responses})

    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    broker.long_polls.fetch(
        Fetch(
            wanted=context.wanted,
            max_wait_ms=request.max_wait,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            up_to=ReadUpTo.LAST_STABLE_OFFSET
            if request.isolation_level == _READ_COMMITTED
            else ReadUpTo.HIGH_WATERMARK,
        ),
        answer,
    )


def _wanted(request: Any) -> dict[TopicPartition, Wanted]:
    return {
        TopicPartition(topic.topic, wanted.partition): Wanted(
            wanted.fetch_offset,
            wanted.partition_max_bytes,
            getattr(wanted, "current_leader_epoch", NO_LEADER_EPOCH),
            getattr(wanted, "last_fetched_epoch", NO_LEADER_EPOCH),
        )
        for topic in request.topics
        for wanted in topic.partitions
    }


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
