"""FindCoordinator (10): who coordinates a group or a transaction. One broker does it all.

0 groups only · 1 transactions, an error message · 3 flexible · 4 several keys in one request (KIP-699) · 5, 6 new kinds
of keys, which are not ours
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.refusal import refusal_of
from kohort.broker.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_KEYS_FROM = 4
_GROUP = 0
_TRANSACTION = 1
_TOPICS = {_GROUP: OFFSETS_TOPIC, _TRANSACTION: TRANSACTION_TOPIC}
"""What each kind of coordinator keeps its state in, made when it is first asked for."""
_NOBODY = {"node_id": -1, "host": "", "port": -1}


@api(10, 0, 6)
def find_coordinator(broker: "Broker", call: "Call") -> None:
    kind = getattr(call.request, "key_type", _GROUP)
    topic = _TOPICS.get(kind)
    if topic is not None and broker.topics.get(topic) is None:
        broker.maker.serve(call, _answer_when_made(broker, call, topic))
    elif topic is None:
        _answer(call, _nobody(ErrorCode.INVALID_REQUEST, f"unknown key type {kind}"))
    else:
        _answer(call, _found(broker))


async def _answer_when_made(broker: "Broker", call: "Call", topic: str) -> None:
    try:
        await broker.maker.ensure(topic)
    except (ClientError, StorageFailed) as error:
        _answer(call, _nobody(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal_of(error)["error_message"]))
    else:
        _answer(call, _found(broker))


def _answer(call: "Call", found: dict[str, Any]) -> None:
    """The same for all keys: one broker coordinates everything."""
    if call.version < _KEYS_FROM:
        call.answer(found)
    else:
        call.answer({"coordinators": [{"key": key, **found} for key in call.request.coordinator_keys]})


def _nobody(error: ErrorCode, message: str) -> dict[str, Any]:
    return {**_NOBODY, "error_code": error, "error_message": message}


def _found(broker: "Broker") -> dict[str, Any]:
    return {**broker.node, "error_code": ErrorCode.NONE, "error_message": "NONE"}
