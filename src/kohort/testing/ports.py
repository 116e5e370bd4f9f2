"""Where a broker can be reached."""

from typing import NamedTuple


class Ports(NamedTuple):
    """Port numbers; 0 asks for any that is free, None for none."""

    kafka: int = 0
    http: int | None = None
