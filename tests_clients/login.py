"""How a client gets in, as a file of settings under Kafka's names."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Login:
    """What a client has to show, and the user that the broker must know for it."""

    protocol: str
    settings: Mapping[str, str] = field(repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    def write(self, work: Path) -> str:
        """Returns the path of the file."""
        path = work / f"login-{next(_numbers)}.properties"
        lines = {"security.protocol": self.protocol, **self.settings}
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return str(path)
