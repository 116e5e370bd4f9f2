"""EndTxn (26): commit or abort a transaction (KIP-98).

1 throttle time · 2 PRODUCER_FENCED (KIP-588) · 3 flexible · 4 an error that is not given here (KIP-890)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.transactions import fenced_as_told
from kohort.broker.security.permission import WRITE_TRANSACTIONAL_ID
from kohort.errors import ErrorCode
from kohort.transaction.requests import EndTxnRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_FENCED_FROM = 2


@api(26, 0, 4, permissions=(WRITE_TRANSACTIONAL_ID,))
def end_txn(broker: "Broker", call: "Call") -> None:
    request = call.request

    def respond(error: ErrorCode) -> None:
        call.answer({"error_code": fenced_as_told(error, is_known=call.version >= _FENCED_FROM)})

    if not call.may(WRITE_TRANSACTIONAL_ID, request.transactional_id):
        respond(WRITE_TRANSACTIONAL_ID.refusal)
        return
    broker.transactions.handle_end_txn(
        EndTxnRequest(request.transactional_id, request.producer_id, request.producer_epoch, request.committed),
        respond,
    )
