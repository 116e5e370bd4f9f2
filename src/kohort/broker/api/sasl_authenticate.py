"""SaslAuthenticate (36): what a client says in the mechanism that it has chosen (KIP-152).

1 how long it counts (KIP-368) · 2 flexible
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.refused_login import refuse_login
from kohort.broker.authentication import Reply
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_NOT_NOW = Reply(ErrorCode.ILLEGAL_SASL_STATE, "nobody has to log in here")


@api(36, 0, 2)
def sasl_authenticate(broker: "Broker", call: "Call") -> None:
    """Who cannot log in hears that with a delay, and has to connect again."""
    authenticator = call.authenticator

    def tell(reply: Reply) -> None:
        values = {
            "error_code": reply.error,
            "error_message": reply.message,
            "auth_bytes": reply.data,
            "session_lifetime": reply.session_lifetime_ms,
        }
        if reply.error is ErrorCode.NONE or authenticator is None or authenticator.is_authenticated:
            call.answer(values)
        else:
            refuse_login(broker, call, values, f"login: {reply.message}")

    if authenticator is None:
        tell(_NOT_NOW)
    else:
        authenticator.authenticate(call.request.auth_bytes, tell)
