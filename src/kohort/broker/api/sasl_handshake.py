"""SaslHandshake (17): by which mechanism a client wants to say who it is (KIP-43).

0 the mechanism's bytes follow as they are, which is not served · 1 they come in SaslAuthenticate (KIP-152)
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_WITH_REQUESTS_FROM = 1


@api(17, 0, 1)
def sasl_handshake(_: "Broker", call: "Call") -> None:
    mechanism, authenticator = call.request.mechanism, call.authenticator
    if authenticator is None:
        call.answer({"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": ()})
    elif call.version < _WITH_REQUESTS_FROM:
        call.answer({"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": ()})
    else:
        call.answer({"error_code": authenticator.handshake(mechanism), "mechanisms": authenticator.mechanisms})
