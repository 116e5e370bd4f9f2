"""FindCoordinator (10): who coordinates a group or a transaction. One broker does it all.

0 groups only · 1 transactions, an error message · 3 flexible · 4 several keys in one request (KIP-699) · 5, 6 new kinds
of keys, which are not ours
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_GROUP = 0
_TRANSACTION = 1
_ENSURE: "dict[int, Callable[[Broker], None]]" = {
    _GROUP: lambda broker: broker.ensure_offsets_topic(),
    _TRANSACTION: lambda broker: broker.ensure_transaction_topic(),
}
"""What each kind of coordinator keeps its state in, made when it is first asked for."""
_NOBODY = {"node_id": -1, "host": "", "port": -1}


@api(10, 0, 6)
def find_coordinator(broker: "Broker", call: "Call") -> None:
    request = call.request
    kind = getattr(request, "key_type", _GROUP)
    if call.version < 4:
        call.answer(_found(broker, kind, request.key))
    else:
        call.answer({"coordinators": [{"key": key, **_found(broker, kind, key)} for key in request.coordinator_keys]})


def _found(broker: "Broker", kind: int, _: str) -> dict[str, Any]:
    if kind not in _ENSURE:
        return {**_NOBODY, "error_code": ErrorCode.INVALID_REQUEST, "error_message": f"unknown key type {kind}"}
    _ENSURE[kind](broker)
    return {
        "node_id": broker.config.broker_id,
        "host": broker.host,
        "port": broker.port,
        "error_code": ErrorCode.NONE,
        "error_message": "NONE",
    }
