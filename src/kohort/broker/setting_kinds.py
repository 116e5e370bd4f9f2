"""The kinds of values that a setting can have, as Kafka reads, checks and writes them."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kohort.errors import ClientError, ErrorCode


class BadSetting(ClientError):
    """A setting that does not exist, or a value that it cannot have."""

    code = ErrorCode.INVALID_CONFIG


class ConfigType(IntEnum):
    """What DescribeConfigs calls the kinds."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Who said it, as DescribeConfigs calls them; a smaller number counts before a larger one."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


_NUMBER = re.compile(r"[+-]?[0-9]+")
_LARGEST = {ConfigType.SHORT: (1 << 15) - 1, ConfigType.INT: (1 << 31) - 1, ConfigType.LONG: (1 << 63) - 1}


@dataclass(frozen=True, slots=True)
class Kind:
    """A type and what limits it. Lists are tuples, in the order in which they were given.

    What a password is stays with whoever reads it: no message says it, and nobody is told of it.
    """

    type: ConfigType
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def is_secret(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def read(self, name: str, text: str) -> Any:
        """The text as a value; `BadSetting` if the setting cannot have it."""
        try:
            value = _READERS[self.type](self.type, text.strip())
        except ValueError:
            raise BadSetting(f"{name} cannot be {text!r}: not a {self.type.name.lower()}") from None
        if isinstance(value, int | float) and not self.least <= value <= self.most:
            raise BadSetting(f"{name} cannot be {text!r}: it must be {self._range()}")
        if self.choices:
            for one in value if isinstance(value, tuple) else (value,):
                if one not in self.choices:
                    raise BadSetting(
                        f"{name} cannot be {text!r}: it must be {' or '.join(one or 'empty' for one in self.choices)}"
                    )
        return value

    def _range(self) -> str:
        return f"at least {self.least}" if self.most == math.inf else f"between {self.least} and {self.most}"


def text_of(value: Any) -> str:
    """A value as Kafka writes it."""
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _read_boolean(_: ConfigType, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _read_integer(kind: ConfigType, text: str) -> int:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        raise ValueError(text)
    value, largest = int(text), _LARGEST[kind]
    if not -largest - 1 <= value <= largest:
        raise ValueError(text)
    return value


def _read_double(_: ConfigType, text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _read_string(_: ConfigType, text: str) -> str:
    return text


def _read_list(_: ConfigType, text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


_READERS: dict[ConfigType, Callable[[ConfigType, str], Any]] = {
    ConfigType.BOOLEAN: _read_boolean,
    ConfigType.STRING: _read_string,
    ConfigType.SHORT: _read_integer,
    ConfigType.INT: _read_integer,
    ConfigType.LONG: _read_integer,
    ConfigType.DOUBLE: _read_double,
    ConfigType.LIST: _read_list,
    ConfigType.PASSWORD: _read_string,
}
