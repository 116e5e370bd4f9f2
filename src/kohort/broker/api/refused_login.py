"""The end of a login that has failed.

The answer and the end of the connection come after `connection.failed.authentication.delay.ms`, so that nobody can try
many passwords in a short time on a few connections. Meanwhile nothing is read from the connection that would be kept.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


def refuse_login(broker: "Broker", call: "Call", values: Mapping[str, Any], reason: str) -> None:
    """Answer this later, and end the connection."""
    call.hear_no_more(reason)
    delay_ms = broker.config.listener.connection_failed_authentication_delay_ms
    broker.loop.call_later(delay_ms / 1000, call.answer, values)
