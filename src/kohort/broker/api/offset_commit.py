"""OffsetCommit (8): keep offsets.

2 a retention time · 3 throttle time · 5 no retention time (KIP-211) · 6 leader epochs (KIP-320) · 7 static members
(KIP-345) · 8 flexible · 9 groups of newer kinds (KIP-848), which are not served here
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.partitions import answer_by_topic, topic_partitions
from kohort.errors import ErrorCode
from kohort.group.requests import OffsetCommitRequest, SameForAll
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import NO_EXPIRE_TIMESTAMP, NO_LEADER_EPOCH, OffsetCommitValue

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.commit_transcoder import TranscodedCommit

_NO_RETENTION = -1


@api(8, 2, 9)
def offset_commit(broker: "Broker", call: "Call") -> None:
    short = _transcoded(broker, call)
    if short is None:
        _commit(broker, call)
    else:
        _commit_transcoded(broker, call, short)
    call.has_its_place = True


def _transcoded(broker: "Broker", call: "Call") -> "TranscodedCommit | None":
    """The commit as a batch of records, where the short way is open and every partition is there."""
    transcoder = broker.short_way.transcoder
    if transcoder is None:
        broker.short_way.count()
        return None
    short = transcoder.transcode(call.frame, call.body_at, call.version, broker.clock.now_ms())
    if short is None or not all(_has_partition(broker, *topic) for topic in short.topics):
        return None
    return short


def _has_partition(broker: "Broker", topic_name: str, partition: int) -> bool:
    topic = broker.topics.get(topic_name)
    return topic is not None and 0 <= partition < topic.partition_count


def _commit_transcoded(broker: "Broker", call: "Call", short: "TranscodedCommit") -> None:
    def respond(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        if isinstance(errors, SameForAll) and errors.error is ErrorCode.NONE:
            call.answer_bytes(short.answer)
        else:
            call.answer({"topics": answer_by_topic(call.request.topics, errors)})

    broker.groups.handle_commit_offsets(
        OffsetCommitRequest(
            short.group_id, short.commits, short.member_id, short.generation_id, short.group_instance_id
        ),
        respond,
    )


def _commit(broker: "Broker", call: "Call") -> None:
    request = call.request
    offsets, unknown = committed_values(broker, request)
    retention = getattr(request, "retention_time", _NO_RETENTION)
    if retention != _NO_RETENTION:
        offsets = {
            partition: value._replace(expire_timestamp=value.commit_timestamp + retention)
            for partition, value in offsets.items()
        }

    def respond(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        call.answer({"topics": answer_by_topic(request.topics, unknown | dict(errors))})

    if not offsets:
        respond({})
        return
    broker.groups.handle_commit_offsets(
        OffsetCommitRequest(
            request.group_id,
            offsets,
            request.member_id,
            request.generation_id_or_member_epoch,
            getattr(request, "group_instance_id", None),
        ),
        respond,
    )


def committed_values(
    broker: "Broker", request: Any
) -> tuple[dict[TopicPartition, OffsetCommitValue], dict[TopicPartition, ErrorCode]]:
    """What is to be committed, and which partitions there are not."""
    now_ms = broker.clock.now_ms()
    values, unknown = {}, {}
    for partition, wanted in topic_partitions(request.topics):
        if not _has_partition(broker, *partition):
            unknown[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        values[partition] = OffsetCommitValue(
            wanted.committed_offset,
            wanted.committed_metadata or "",
            now_ms,
            getattr(wanted, "committed_leader_epoch", NO_LEADER_EPOCH),
            NO_EXPIRE_TIMESTAMP,
        )
    return values, unknown
