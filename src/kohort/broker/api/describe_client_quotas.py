"""DescribeClientQuotas (48): the quotas of users and client ids (KIP-546).

0 as before · 1 flexible
"""

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.refusal import Refused, not_allowed
from kohort.broker.quotas.entities import KINDS, Entity
from kohort.broker.security.permission import DESCRIBE_CLUSTER_CONFIGS
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


class _Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


@api(48, 0, 1, permissions=(DESCRIBE_CLUSTER_CONFIGS,))
def describe_client_quotas(broker: "Broker", call: "Call") -> None:
    try:
        if not call.may(DESCRIBE_CLUSTER_CONFIGS):
            raise not_allowed(DESCRIBE_CLUSTER_CONFIGS)
        _check(call.request.components)
    except Refused as refusal:
        call.answer({"error_code": refusal.code, "error_message": str(refusal), "entries": None})
        return
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "values": [{"key": key, "value": value} for key, value in quotas.items()],
        }
        for entity, quotas in broker.quotas
        if _matches(entity, call.request)
    ]
    call.answer({"error_code": ErrorCode.NONE, "error_message": None, "entries": entries})


def _check(components: list[Any]) -> None:
    kinds = [component.entity_type for component in components]
    for component in components:
        kind, match = component.entity_type, component.match_type
        if kinds.count(kind) > 1:
            raise Refused(ErrorCode.INVALID_REQUEST, f"more than one component of the filter is for {kind!r}")
        if not kind:
            raise Refused(ErrorCode.INVALID_REQUEST, "a component of the filter is for nothing")
        if kind not in KINDS:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"there are no quotas for entities of the kind {kind!r}")
        if match not in set(_Match):
            raise Refused(ErrorCode.INVALID_REQUEST, f"there is no way {match} to match {kind!r}")
        if (match == _Match.EXACT) != (component.match is not None):
            raise Refused(ErrorCode.INVALID_REQUEST, f"a name has to be there to match {kind!r} exactly, and only then")


def _matches(entity: Entity, request: Any) -> bool:
    """Each component has to fit; what none is for may be there all the same unless the filter is strict."""
    named = dict(entity)
    for component in request.components:
        if component.entity_type not in named:
            return False
        if component.match_type != _Match.ANY and named.pop(component.entity_type) != component.match:
            return False
        named.pop(component.entity_type, None)
    return not (request.strict and named)
