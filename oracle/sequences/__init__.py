"""Every conversation that is had with both brokers: short functions, one subject per file.

A sequence is named after its function and takes a `Talk`. Its docstring may say what it is there for.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from oracle.talk import Talk

Sequence = Callable[[Talk], None]

_SEQUENCES: dict[str, Sequence] = {}


def sequence(function: Sequence) -> Sequence:
    """Registers a sequence under the name of its function."""
    _add(function.__name__.replace("_", "-"), function)
    return function


def for_versions(*versions: int) -> Callable[[Callable[[Talk, int], None]], Callable[[Talk, int], None]]:
    """Registers a sequence once for each version of an API."""

    def register(function: Callable[[Talk, int], None]) -> Callable[[Talk, int], None]:
        for version in versions:
            _add(f"{function.__name__.replace('_', '-')}-v{version}", _with_version(function, version))
        return function

    return register


def _with_version(function: Callable[[Talk, int], Any], version: int) -> Sequence:
    def run(talk: Talk) -> None:
        function(talk, version)

    return run


def _add(name: str, run: Sequence) -> None:
    if name in _SEQUENCES:
        raise ValueError(f"two sequences are named {name}")
    _SEQUENCES[name] = run


def all_sequences() -> dict[str, Sequence]:
    """By name, in the order in which they are had."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__))
    for module in modules:
        importlib.import_module(f"{__name__}.{module}")
    return dict(_SEQUENCES)
