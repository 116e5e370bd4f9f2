"""What whoever starts a broker should know about who can get in."""

from collections.abc import Iterator, Sequence

from kohort.broker.entrance import Entrance
from kohort.broker.security.listener_settings import PLAIN


def warnings_of(entrances: Sequence[Entrance]) -> Iterator[str]:
    """One line for each risk that the listeners are."""
    outside = [entrance for entrance in entrances if not entrance.listener.address.is_loopback]
    open_ones = ", ".join(str(entrance.listener) for entrance in outside if entrance.admits_anybody)
    if open_ones:
        yield (
            f"whoever can connect to {open_ones} may read, write and delete everything: nobody has to log in there "
            "(docs/security.md)"
        )
    readable = ", ".join(
        str(entrance.listener)
        for entrance in outside
        if entrance.listener.has_sasl and not entrance.listener.has_tls and PLAIN in entrance.mechanisms
    )
    if readable:
        yield f"whoever can listen in on the way to {readable} reads passwords: SASL_SSL hides them"
