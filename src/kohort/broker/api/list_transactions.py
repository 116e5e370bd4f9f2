"""ListTransactions (66): all transactional ids (KIP-664).

1 only those whose transaction is open for so long (KIP-994). Version 2 brings a regular expression of RE2's, which
never takes long; Python's may take for ever, and this is not the place to wait for it.
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_TRANSACTIONAL_ID
from kohort.errors import ErrorCode
from kohort.transaction.states import TransactionState

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_ANY_DURATION = -1


@api(66, 0, 1, permissions=(DESCRIBE_TRANSACTIONAL_ID,))
def list_transactions(broker: "Broker", call: "Call") -> None:
    request = call.request
    known = broker.transactions.manager.known_ids()
    if isinstance(known, ErrorCode):
        call.answer({"error_code": known, "unknown_state_filters": (), "transaction_states": ()})
        return
    states, producers = set(request.state_filters), set(request.producer_id_filters)
    longer_than = getattr(request, "duration_filter", _ANY_DURATION)
    now_ms = broker.clock.now_ms()
    told = [
        {
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "transaction_state": one.state,
        }
        for one in known
        if one.state is not TransactionState.DEAD
        and (not states or one.state in states)
        and (not producers or one.producer_id in producers)
        and (longer_than < 0 or now_ms - one.txn_start_timestamp > longer_than)
        and call.might(DESCRIBE_TRANSACTIONAL_ID, one.transactional_id)
    ]
    unknown = [name for name in dict.fromkeys(request.state_filters) if name not in set(TransactionState)]
    call.answer({"error_code": ErrorCode.NONE, "unknown_state_filters": unknown, "transaction_states": told})
