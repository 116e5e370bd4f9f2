"""OffsetCommit (8): keep offsets.

2 a retention time · 3 throttle time · 5 no retention time (KIP-211) · 6 leader epochs (KIP-320) · 7 static members
(KIP-345) · 8 flexible · 9 groups of newer kinds (KIP-848), which are not served here
"""

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.partitions import answer_by_topic, topic_partitions
from kohort.broker.security.permission import READ_GROUP, READ_TOPIC
from kohort.errors import ErrorCode
from kohort.group.requests import OffsetCommitRequest, SameForAll
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import NO_EXPIRE_TIMESTAMP, NO_LEADER_EPOCH, OffsetCommitValue

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.commit_transcoder import TranscodedCommit
    from kohort.broker.peer import Peer

_NO_RETENTION = -1


def _commit_at_once(broker: "Broker", peer: "Peer", frame: bytes, body_at: int, version: int) -> bytes | None:
    """A commit that takes the short way and waits for nobody."""
    if broker.short_way.transcoder is None:
        return None
    short = _transcoded(broker, peer, frame, body_at, version)
    if short is not None and broker.groups.commit_at_once(short.names.who, short.commits):
        return short.answer
    return None


@api(8, 2, 9, permissions=(READ_GROUP, READ_TOPIC), at_once=_commit_at_once)
def offset_commit(broker: "Broker", call: "Call") -> None:
    short = _transcoded(broker, call.peer, call.frame, call.body_at, call.version)
    if short is None:
        _commit(broker, call)
    else:
        _commit_transcoded(broker, call, short)
    call.has_its_place = True


def _transcoded(broker: "Broker", peer: "Peer", frame: bytes, body_at: int, version: int) -> "TranscodedCommit | None":
    """The commit as a batch of records, where the short way is open and nothing stands in it: who may not is told so
    on the long way."""
    transcoder = broker.short_way.transcoder
    if transcoder is None:
        broker.short_way.count()
        return None
    short = transcoder.transcode(frame, body_at, version, broker.clock.now_ms())
    if short is None:
        return None
    (who, topics), highest, _, _ = short
    for name, partition in zip(topics, highest, strict=True):
        if not _has_partition(broker, name, partition):
            return None
    authorizer = peer.authorizer
    if authorizer is not None:
        principal, host = peer.principal, peer.host
        if not authorizer.may(principal, host, READ_GROUP, who.group_id):
            return None
        for name in topics:
            if not authorizer.may(principal, host, READ_TOPIC, name):
                return None
    return short


def _has_partition(broker: "Broker", topic_name: str, partition: int) -> bool:
    topic = broker.topics.get(topic_name)
    return topic is not None and 0 <= partition < topic.partition_count


def _commit_transcoded(broker: "Broker", call: "Call", short: "TranscodedCommit") -> None:
    who, commits = short.names.who, short.commits

    def respond(error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            call.answer_bytes(short.answer)
        else:
            call.answer({"topics": answer_by_topic(call.request.topics, SameForAll(commits, error))})

    if not broker.groups.commit_soon(who, commits, respond):
        broker.groups.handle_commit_offsets(
            OffsetCommitRequest(who.group_id, commits, who.member_id, who.generation_id, who.group_instance_id),
            lambda errors: respond(errors[next(iter(commits))]),
        )


def _commit(broker: "Broker", call: "Call") -> None:
    request = call.request
    if not call.may(READ_GROUP, request.group_id):
        refused = dict.fromkeys((partition for partition, _ in topic_partitions(request.topics)), READ_GROUP.refusal)
        call.answer({"topics": answer_by_topic(request.topics, refused)})
        return
    not_for_them = call.refused(READ_TOPIC, (topic.name for topic in request.topics))
    offsets, failed = committed_values(broker, request, not_for_them)
    retention = getattr(request, "retention_time", _NO_RETENTION)
    if retention != _NO_RETENTION:
        offsets = {
            partition: value._replace(expire_timestamp=value.commit_timestamp + retention)
            for partition, value in offsets.items()
        }

    def respond(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        call.answer({"topics": answer_by_topic(request.topics, failed | dict(errors))})

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
    broker: "Broker", request: Any, refused: Container[str | None] = ()
) -> tuple[dict[TopicPartition, OffsetCommitValue], dict[TopicPartition, ErrorCode]]:
    """What is to be committed, and what is said of partitions that there are not, or not for who asks: those of topics
    that are refused."""
    now_ms = broker.clock.now_ms()
    values, failed = {}, {}
    for partition, wanted in topic_partitions(request.topics):
        if partition.topic in refused:
            failed[partition] = READ_TOPIC.refusal
            continue
        if not _has_partition(broker, *partition):
            failed[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        values[partition] = OffsetCommitValue(
            wanted.committed_offset,
            wanted.committed_metadata or "",
            now_ms,
            getattr(wanted, "committed_leader_epoch", NO_LEADER_EPOCH),
            NO_EXPIRE_TIMESTAMP,
        )
    return values, failed
