"""DescribeTransactions (65): where transactional ids are in their lives (KIP-664)."""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from kohort.errors import ErrorCode
from kohort.group.records import is_writable
from kohort.transaction.states import TransactionState

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(65, 0, 0, permissions=(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC))
def describe_transactions(broker: "Broker", call: "Call") -> None:
    wanted = call.request.transactional_ids
    refused = call.refused(DESCRIBE_TRANSACTIONAL_ID, wanted)
    states = [_told(broker, call, name, is_refused=name in refused) for name in wanted]
    call.answer({"transaction_states": states})


def _told(broker: "Broker", call: "Call", transactional_id: Any, *, is_refused: bool) -> dict[str, Any]:
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
    if is_refused:
        return told | {"error_code": DESCRIBE_TRANSACTIONAL_ID.refusal}
    if not transactional_id or not is_writable(transactional_id):
        return told | {"error_code": ErrorCode.INVALID_REQUEST}
    found = broker.transactions.manager.find(transactional_id)
    if isinstance(found, ErrorCode):
        return told | {"error_code": found}
    if found is None or found.state is TransactionState.DEAD:
        return told | {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
    by_topic: dict[str, list[int]] = {}
    for topic, partition in found.topic_partitions:
        if not call.might(DESCRIBE_TOPIC, topic):
            continue
        by_topic.setdefault(topic, []).append(partition)
    return told | {
        "transaction_state": found.state,
        "transaction_timeout": found.txn_timeout_ms,
        "transaction_start_time": found.txn_start_timestamp,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()],
    }
