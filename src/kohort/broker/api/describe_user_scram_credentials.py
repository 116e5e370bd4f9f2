"""DescribeUserScramCredentials (50): who can log in by a password that the broker keeps, and how (KIP-554).

Nothing is told of the password itself.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_CLUSTER
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(50, 0, 0, permissions=(DESCRIBE_CLUSTER,))
def describe_user_scram_credentials(broker: "Broker", call: "Call") -> None:
    if not call.may(DESCRIBE_CLUSTER):
        call.answer({"error_code": DESCRIBE_CLUSTER.refusal, "error_message": None, "results": []})
        return
    asked = [user.name for user in call.request.users or ()]
    counts = Counter(asked or broker.users.names())
    results = [_described(broker, name, is_once=count == 1) for name, count in counts.items()]
    call.answer({"error_code": ErrorCode.NONE, "error_message": None, "results": results})


def _described(broker: "Broker", name: str, *, is_once: bool) -> dict[str, Any]:
    found = broker.users.mechanisms_of(name)
    told: dict[str, Any] = {"user": name, "error_code": ErrorCode.NONE, "error_message": None, "credential_infos": []}
    if not is_once:
        told["error_code"] = ErrorCode.DUPLICATE_RESOURCE
        told["error_message"] = f"user {name!r} is asked for more than once"
    elif not found:
        told["error_code"] = ErrorCode.RESOURCE_NOT_FOUND
        told["error_message"] = f"user {name!r} has no password here"
    else:
        told["credential_infos"] = [
            {"mechanism": mechanism, "iterations": iterations} for mechanism, iterations in found.items()
        ]
    return told
