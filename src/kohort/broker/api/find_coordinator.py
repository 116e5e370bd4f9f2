"""FindCoordinator (10): who coordinates a group or a transaction. One broker does it all.

0 groups only · 1 transactions, an error message · 3 flexible · 4 several keys in one request (KIP-699) · 5, 6 new kinds
of keys, which are not ours
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.refusal import refusal_of
from kohort.broker.security.permission import DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID
from kohort.broker.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_KEYS_FROM = 4
_GROUP = 0
_TRANSACTION = 1
_KINDS = {
    _GROUP: (OFFSETS_TOPIC, DESCRIBE_GROUP),
    _TRANSACTION: (TRANSACTION_TOPIC, DESCRIBE_TRANSACTIONAL_ID),
}
"""What each kind of coordinator keeps its state in, made when it is first asked for, and who may ask for it."""
_NOBODY = {"node_id": -1, "host": "", "port": -1}


@api(10, 0, 6, permissions=(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID))
def find_coordinator(broker: "Broker", call: "Call") -> None:
    kind = getattr(call.request, "key_type", _GROUP)
    topic, permission = _KINDS.get(kind, (None, None))
    if topic is None or permission is None:
        _answer(call, {}, _nobody(ErrorCode.INVALID_REQUEST, f"unknown key type {kind}"))
        return
    keys = _keys(call)
    refused = call.refused(permission, keys)
    not_for_them = {key: _nobody(permission.refusal, None) for key in keys if key in refused}
    if broker.topics.get(topic) is None and len(not_for_them) < len(set(keys)):
        broker.maker.serve(call, _answer_when_made(broker, call, topic, not_for_them))
    else:
        _answer(call, not_for_them, _found(broker, call))


async def _answer_when_made(
    broker: "Broker", call: "Call", topic: str, not_for_them: Mapping[str, dict[str, Any]]
) -> None:
    try:
        await broker.maker.ensure(topic)
    except (ClientError, StorageFailed) as error:
        failed = _nobody(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal_of(error)["error_message"])
        _answer(call, not_for_them, failed)
    else:
        _answer(call, not_for_them, _found(broker, call))


def _keys(call: "Call") -> list[str]:
    keys: list[str] = [call.request.key] if call.version < _KEYS_FROM else call.request.coordinator_keys
    return keys


def _answer(call: "Call", not_for_them: Mapping[str, dict[str, Any]], found: dict[str, Any]) -> None:
    """The same for all keys that are not refused: one broker coordinates everything."""
    told = [{"key": key, **not_for_them.get(key, found)} for key in _keys(call)]
    call.answer({"coordinators": told} if call.version >= _KEYS_FROM else told[0])


def _nobody(error: ErrorCode, message: str | None) -> dict[str, Any]:
    return {**_NOBODY, "error_code": error, "error_message": message}


def _found(broker: "Broker", call: "Call") -> dict[str, Any]:
    return {**broker.node_for(call), "error_code": ErrorCode.NONE, "error_message": "NONE"}
