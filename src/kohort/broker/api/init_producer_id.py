"""InitProducerId (22): an id under which a producer's batches are recognised when they are sent again (KIP-98).

1 throttle time · 2 flexible · 3 a producer tells the id that it has (KIP-360) · 4 PRODUCER_FENCED · 5 an error that is
not given here (KIP-890)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.transactions import fenced_as_told
from kohort.broker.security.permission import IDEMPOTENT_WRITE, WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from kohort.errors import ErrorCode
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kohort.transaction.requests import InitProducerIdRequest, InitProducerIdResult, ProducerIdAndEpoch

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_FENCED_FROM = 4


@api(22, 0, 5, permissions=(WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC))
def init_producer_id(broker: "Broker", call: "Call") -> None:
    request = call.request
    known = ProducerIdAndEpoch(
        getattr(request, "producer_id", NO_PRODUCER_ID), getattr(request, "producer_epoch", NO_PRODUCER_EPOCH)
    )

    def respond(result: InitProducerIdResult) -> None:
        call.answer(
            {
                "error_code": fenced_as_told(result.error, is_known=call.version >= _FENCED_FROM),
                "producer_id": result.producer_id,
                "producer_epoch": result.producer_epoch,
            }
        )

    if (refusal := _refusal(call, request.transactional_id)) is not ErrorCode.NONE:
        respond(InitProducerIdResult(refusal))
        return
    if (known.producer_id == NO_PRODUCER_ID) != (known.producer_epoch == NO_PRODUCER_EPOCH):
        respond(InitProducerIdResult(ErrorCode.INVALID_REQUEST))
        return
    expected = None if known.producer_id == NO_PRODUCER_ID else known
    broker.transactions.handle_init_producer_id(
        InitProducerIdRequest(request.transactional_id, request.transaction_timeout, expected), respond
    )


def _refusal(call: "Call", transactional_id: str | None) -> ErrorCode:
    """Without a transaction, whoever may write to any topic needs no more than that (KIP-679)."""
    if transactional_id is not None:
        return ErrorCode.NONE if call.may(WRITE_TRANSACTIONAL_ID, transactional_id) else WRITE_TRANSACTIONAL_ID.refusal
    if call.might_somewhere(WRITE_TOPIC) or call.may(IDEMPOTENT_WRITE):
        return ErrorCode.NONE
    return IDEMPOTENT_WRITE.refusal
