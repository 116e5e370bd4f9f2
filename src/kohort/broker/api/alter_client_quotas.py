"""AlterClientQuotas (49): set or remove quotas of users and client ids (KIP-546).

0 as before · 1 flexible
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.refusal import not_allowed, refusal_of
from kohort.broker.quotas.entities import Entity, checked_quota, entity_of, log_key
from kohort.broker.security.permission import ALTER_CLUSTER_CONFIGS
from kohort.errors import ClientError, ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(49, 0, 1, permissions=(ALTER_CLUSTER_CONFIGS,))
def alter_client_quotas(broker: "Broker", call: "Call") -> None:
    """Each entry by itself; those that can be are kept together."""
    after: dict[Entity, Mapping[str, float]] = {}
    answers = []
    is_allowed = call.may(ALTER_CLUSTER_CONFIGS)
    for entry in call.request.entries:
        told = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "entity": [{"entity_type": part.entity_type, "entity_name": part.entity_name} for part in entry.entity],
        }
        try:
            if not is_allowed:
                raise not_allowed(ALTER_CLUSTER_CONFIGS)
            entity = entity_of((part.entity_type, part.entity_name) for part in entry.entity)
            before = after.get(entity, broker.security_log.newest(log_key(entity)) or {})
            after[entity] = _changed(before, entry.ops)
        except ClientError as refusal:
            told |= refusal_of(refusal)
        answers.append(told)

    def respond(error: ErrorCode) -> None:
        for told in answers:
            if error is not ErrorCode.NONE and told["error_code"] is ErrorCode.NONE:
                told |= refusal_of(StorageFailed("quotas could not be kept"))
        call.answer({"entries": answers})

    changes = {log_key(entity): quotas or None for entity, quotas in after.items()}
    if call.request.validate_only or not changes:
        respond(ErrorCode.NONE)
    else:
        broker.security_log.change(changes, respond)


def _changed(before: Mapping[str, float], ops: list[Any]) -> dict[str, float]:
    quotas = dict(before)
    for op in ops:
        if op.remove:
            checked_quota(op.key, 1)
            quotas.pop(op.key, None)
        else:
            quotas[op.key] = checked_quota(op.key, op.value)
    return quotas
