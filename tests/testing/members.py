"""Members of groups and simple committers, in as few requests as they need."""

from typing import Any

from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from kohort.testing import Broker
from tests.broker.wire_client import WireClient

OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 8, 9, 10, 11, 12, 14

GROUP = "readers"
TOPIC = "orders"


def client(broker: Broker, client_id: str = "wire-client") -> WireClient:
    return WireClient(broker.port, client_id=client_id)


def join(asking: WireClient, group: str = GROUP, session_timeout_ms: int = 10_000) -> Any:
    """Become the only member of a group, up to the point where it waits for the assignment."""
    subscription = encode_subscription(Subscription((TOPIC,)))
    return asking.ask(
        JOIN_GROUP,
        2,
        group_id=group,
        session_timeout=session_timeout_ms,
        rebalance_timeout=session_timeout_ms,
        member_id="",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": subscription}],
    )


def sync(asking: WireClient, joined: Any, group: str = GROUP) -> Any:
    mine = encode_assignment(Assignment((TopicPartitions(TOPIC, (0,)),)))
    return asking.ask(
        SYNC_GROUP,
        1,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[{"member_id": joined.member_id, "assignment": mine}],
    )


def member(asking: WireClient, group: str = GROUP, session_timeout_ms: int = 10_000) -> Any:
    """The only member of a Stable group."""
    joined = join(asking, group, session_timeout_ms)
    assert joined.error_code == 0
    assert sync(asking, joined, group).error_code == 0
    return joined


def heartbeat(asking: WireClient, joined: Any, group: str = GROUP) -> int:
    asked = {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}
    return int(asking.ask(HEARTBEAT, 1, **asked).error_code)


def commit_request(offset: int, group: str = GROUP, topic: str = TOPIC, partition: int = 0) -> dict[str, Any]:
    committed = {"partition_index": partition, "committed_offset": offset, "committed_metadata": ""}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": topic, "partitions": [committed]}],
    }


def commit(asking: WireClient, offset: int, group: str = GROUP, topic: str = TOPIC) -> int:
    """Commit as a simple consumer. Returns the error."""
    answer = asking.ask(OFFSET_COMMIT, 5, **commit_request(offset, group, topic))
    return int(answer.topics[0].partitions[0].error_code)


def committed(asking: WireClient, group: str = GROUP, topic: str = TOPIC) -> int:
    """The committed offset; -1 if there is none."""
    asked = [{"name": topic, "partition_indexes": [0]}]
    answer = asking.ask(OFFSET_FETCH, 5, group_id=group, topics=asked)
    assert answer.error_code == 0
    return int(answer.topics[0].partitions[0].committed_offset)
