"""SaslHandshake (17): by which mechanism a client wants to say who it is (KIP-43).

0 the mechanism's bytes follow as they are, which is not served · 1 they come in SaslAuthenticate (KIP-152)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.refused_login import refuse_login
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_WITH_REQUESTS_FROM = 1


@api(17, 0, 1)
def sasl_handshake(broker: "Broker", call: "Call") -> None:
    """Who wants a mechanism that there is not hears that with a delay, and has to connect again."""
    mechanism, authenticator = call.request.mechanism, call.authenticator
    if authenticator is None:
        call.answer({"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": ()})
        return
    error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    if call.version >= _WITH_REQUESTS_FROM:
        error = authenticator.handshake(mechanism)
    values = {"error_code": error, "mechanisms": authenticator.mechanisms}
    if error is ErrorCode.NONE or authenticator.is_authenticated:
        call.answer(values)
    else:
        refuse_login(broker, call, values, f"login: mechanism {mechanism!r}, version {call.version}: {error.name}")
