"""Settings that stand somewhere else than where they are said, as secrets do: `${env:NAME}` and the like.

Whoever starts the broker may refer to its environment and its files, in Kafka's words for that. Only what is said on
the command line and in the file of `--config` is looked at: what comes over the wire is never taken for a reference.
"""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from kohort.errors import KohortError
from kohort.log.security import read_properties

_REFERENCE = re.compile(r"\$\{(?P<kind>env|file|dir):(?P<what>[^}]*)\}")


class BadReference(KohortError):
    """What is referred to is not there. The text does not say what else is."""


def is_reference(text: str) -> bool:
    """Whether the text says nothing by itself."""
    return _REFERENCE.fullmatch(text) is not None


def resolved(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with what they refer to in its place."""
    return {name: _REFERENCE.sub(partial(_value, name), text) for name, text in settings.items()}


def _value(name: str, found: re.Match[str]) -> str:
    what = found["what"]
    if found["kind"] == "env":
        if what not in os.environ:
            raise BadReference(f"{name}: there is no {what} in the environment")
        return os.environ[what]
    place, colon, key = what.rpartition(":")
    if not colon or not place or not key:
        raise BadReference(f"{name}: {found[0]} is not ${{{found['kind']}:PATH:NAME}}")
    if found["kind"] == "dir":
        return _content(name, Path(place) / key)
    values = read_properties(Path(place))
    if key not in values:
        raise BadReference(f"{name}: there is no {key} in {place}")
    return values[key]


def _content(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadReference(f"{name}: {path}: {getattr(error, 'strerror', None) or 'is not text'}") from None
