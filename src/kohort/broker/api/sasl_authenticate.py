"""SaslAuthenticate (36): what a client says in the mechanism that it has chosen (KIP-152).

1 how long it counts (KIP-368) · 2 flexible
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.authentication import Reply
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_NOT_NOW = Reply(ErrorCode.ILLEGAL_SASL_STATE, "nobody has to log in here")


@api(36, 0, 2)
def sasl_authenticate(_: "Broker", call: "Call") -> None:
    said, authenticator = call.request.auth_bytes, call.authenticator
    reply = _NOT_NOW if authenticator is None else authenticator.authenticate(said)
    call.answer(
        {
            "error_code": reply.error,
            "error_message": reply.message,
            "auth_bytes": reply.data,
            "session_lifetime": reply.session_lifetime_ms,
        }
    )
