"""Members of groups in few words, over the wire."""

from typing import Any

from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from tests.broker.wire_client import WireClient

FIND_COORDINATOR, OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 10, 8, 11, 12, 13, 14


def find_coordinator(client: WireClient, group_id: str) -> None:
    """As every client does first; it makes the offsets topic."""
    assert client.ask(FIND_COORDINATOR, 0, key=group_id).error_code == 0


def join_request(group_id: str, *topics: str, member_id: str = "", **more: Any) -> dict[str, Any]:
    metadata = encode_subscription(Subscription(topics))
    return {
        "group_id": group_id,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
        **more,
    }


def join(client: WireClient, group_id: str, *topics: str, **more: Any) -> Any:
    """The answer to the only member of a group, or to the last that was waited for."""
    answer = client.ask(JOIN_GROUP, 3, **join_request(group_id, *topics, **more))
    assert answer.error_code == 0, answer
    return answer


def sync(client: WireClient, group_id: str, joined: Any, assignments: dict[str, bytes]) -> Any:
    answer = client.ask(
        SYNC_GROUP,
        2,
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[{"member_id": member, "assignment": blob} for member, blob in assignments.items()],
    )
    assert answer.error_code == 0, answer
    return answer


def assignment(topic: str, *partitions: int) -> bytes:
    return encode_assignment(Assignment((TopicPartitions(topic, partitions),)))


def settle(client: WireClient, group_id: str, topic: str, *partitions: int, **more: Any) -> Any:
    """A group of one member that owns these partitions."""
    find_coordinator(client, group_id)
    joined = join(client, group_id, topic, **more)
    sync(client, group_id, joined, {joined.member_id: assignment(topic, *partitions)})
    return joined


def leave(client: WireClient, group_id: str, joined: Any) -> None:
    assert client.ask(LEAVE_GROUP, 0, group_id=group_id, member_id=joined.member_id).error_code == 0


def commit(client: WireClient, group_id: str, topic: str, offsets: dict[int, int], joined: Any = None) -> Any:
    """What became of the first offset. Without a member it is a group that only keeps offsets."""
    answer = client.ask(
        OFFSET_COMMIT,
        5,
        group_id=group_id,
        generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
        member_id="" if joined is None else joined.member_id,
        topics=[
            {
                "name": topic,
                "partitions": [
                    {"partition_index": number, "committed_offset": offset, "committed_metadata": ""}
                    for number, offset in offsets.items()
                ],
            }
        ],
    )
    return answer.topics[0].partitions[0].error_code
