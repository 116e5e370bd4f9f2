"""AddOffsetsToTxn (25): a group whose offsets a transaction is about to commit (KIP-98).

1 throttle time · 2 PRODUCER_FENCED (KIP-588) · 3 flexible · 4 an error that is not given here (KIP-890)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.transactions import fenced_as_told
from kohort.broker.security.permission import READ_GROUP, WRITE_TRANSACTIONAL_ID
from kohort.broker.topics import OFFSETS_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import TopicPartition
from kohort.transaction.requests import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_FENCED_FROM = 2


@api(25, 0, 4, permissions=(WRITE_TRANSACTIONAL_ID, READ_GROUP))
def add_offsets_to_txn(broker: "Broker", call: "Call") -> None:
    request = call.request
    for permission, name in ((WRITE_TRANSACTIONAL_ID, request.transactional_id), (READ_GROUP, request.group_id)):
        if not call.may(permission, name):
            call.answer({"error_code": permission.refusal})
            return
    if broker.topics.get(OFFSETS_TOPIC) is None:
        broker.maker.serve(call, _add_when_made(broker, call, request))
    else:
        _add(broker, call, request)


async def _add_when_made(broker: "Broker", call: "Call", request: Any) -> None:
    try:
        await broker.maker.ensure(OFFSETS_TOPIC)
    except (ClientError, StorageFailed):
        call.answer({"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE})
    else:
        _add(broker, call, request)


def _add(broker: "Broker", call: "Call", request: Any) -> None:
    partition = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))

    def respond(error: ErrorCode) -> None:
        call.answer({"error_code": fenced_as_told(error, is_known=call.version >= _FENCED_FROM)})

    broker.transactions.handle_add_partitions_to_txn(
        AddPartitionsToTxnRequest(request.transactional_id, request.producer_id, request.producer_epoch, (partition,)),
        respond,
    )
