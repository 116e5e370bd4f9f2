"""DescribeTransactions (65): where transactional ids are in their lives (KIP-664)."""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.errors import ErrorCode
from kohort.group.records import is_writable
from kohort.transaction.states import TransactionState

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(65, 0, 0)
def describe_transactions(broker: "Broker", call: "Call") -> None:
    call.answer(
        {"transaction_states": [_told(broker, transactional_id) for transactional_id in call.request.transactional_ids]}
    )


def _told(broker: "Broker", transactional_id: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "error_code": ErrorCode.NONE,
        "transactional_id": transactional_id,
        "transaction_state": "",
        "transaction_timeout": 0,
        "transaction_start_time": 0,
        "producer_id": 0,
        "producer_epoch": 0,
        "topics": [],
    }
    if not transactional_id or not is_writable(transactional_id):
        return told | {"error_code": ErrorCode.INVALID_REQUEST}
    found = broker.transactions.manager.find(transactional_id)
    if isinstance(found, ErrorCode):
        return told | {"error_code": found}
    if found is None or found.state is TransactionState.DEAD:
        return told | {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
    by_topic: dict[str, list[int]] = {}
    for topic, partition in found.topic_partitions:
        by_topic.setdefault(topic, []).append(partition)
    return told | {
        "transaction_state": found.state,
        "transaction_timeout": found.txn_timeout_ms,
        "transaction_start_time": found.txn_start_timestamp,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()],
    }
