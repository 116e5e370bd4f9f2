"""Where a broker can be reached."""

from typing import NamedTuple


class Ports(NamedTuple):
    """Port numbers; 0 asks for any that is free, None for none."""

    kafka: int = 0
    http: int | None = None
    listeners: str = ""
    """All listeners as the setting has them, with the ports that they have."""
