"""AlterUserScramCredentials (51): passwords of users, as SCRAM salts them, come and go (KIP-554).

What is wrong with one change of a user is wrong with all of his; those of others are made. Who is logged in stays so.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.broker.api import api
from kohort.broker.api.refusal import Refused
from kohort.broker.security.permission import ALTER_CLUSTER
from kohort.broker.security.scram_credentials import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_of,
)
from kohort.broker.security.users import Change
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


class _Wanted(NamedTuple):
    user: str
    mechanism: int
    upsertion: Any
    """None if the password is to go."""


@api(51, 0, 0, permissions=(ALTER_CLUSTER,))
def alter_user_scram_credentials(broker: "Broker", call: "Call") -> None:
    if not call.may(ALTER_CLUSTER):
        names = dict.fromkeys(wanted.user for wanted in _wanted(call.request))
        call.answer({"results": [_result(name, ALTER_CLUSTER.refusal, None) for name in names]})
        return
    errors: dict[str, tuple[ErrorCode, str | None]] = {}
    changes: dict[Change, ScramCredential | None] = {}
    for wanted in _wanted(call.request):
        errors.setdefault(wanted.user, (ErrorCode.NONE, None))
        try:
            key, credential = _change(broker, wanted)
            if key in changes:
                raise Refused(ErrorCode.DUPLICATE_RESOURCE, "a password cannot be altered twice in one request")
            changes[key] = credential
        except Refused as refusal:
            if errors[wanted.user][0] is ErrorCode.NONE:
                errors[wanted.user] = refusal.code, str(refusal)
    changes = {key: one for key, one in changes.items() if errors[key[0]][0] is ErrorCode.NONE}

    def told(error: ErrorCode) -> None:
        results = [_result(user, *(known if known[0] else (error, None))) for user, known in errors.items()]
        call.answer({"results": results})

    broker.users.change(changes, told)


def _wanted(request: Any) -> Iterator[_Wanted]:
    for deletion in request.deletions:
        yield _Wanted(deletion.name, deletion.mechanism, None)
    for upsertion in request.upsertions:
        yield _Wanted(upsertion.name, upsertion.mechanism, upsertion)


def _change(broker: "Broker", wanted: _Wanted) -> tuple[Change, ScramCredential | None]:
    """What is to be kept; `Refused` if it cannot be."""
    user, number, upsertion = wanted
    if not user:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user has a name")
    if number not in list(ScramMechanism):
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {number}")
    mechanism = ScramMechanism(number)
    if upsertion is None:
        if broker.users.credential(user, mechanism) is None:
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, f"user {user!r} has no password for {mechanism.sasl_name}")
        return (user, mechanism), None
    if not LEAST_ITERATIONS <= upsertion.iterations <= MOST_ITERATIONS:
        few = "few" if upsertion.iterations < LEAST_ITERATIONS else "many"
        raise Refused(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"too {few} iterations: {upsertion.iterations}, there must be {LEAST_ITERATIONS} to {MOST_ITERATIONS}",
        )
    if not upsertion.salt or not upsertion.salted_password:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a password has a salt, and is not empty")
    return (user, mechanism), credential_of(
        mechanism, bytes(upsertion.salted_password), bytes(upsertion.salt), upsertion.iterations
    )


def _result(user: str, error: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"user": user, "error_code": error, "error_message": message}
