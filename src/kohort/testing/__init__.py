"""A broker for tests: real clients, a real port, and everything that can go wrong at the push of a button.

Nothing is imported before it is asked for: pytest loads the plug-in of this package into every run on a machine where
kohort is installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.testing.broker import Broker
    from kohort.testing.faults import Fault
    from kohort.testing.groups import Group, Member, Offset
    from kohort.testing.refusals import BrokerFailed, NotPossible

__all__ = ["Broker", "BrokerFailed", "Fault", "Group", "Member", "NotPossible", "Offset"]

_HOMES = {
    "Broker": "broker",
    "BrokerFailed": "refusals",
    "Fault": "faults",
    "Group": "groups",
    "Member": "groups",
    "NotPossible": "refusals",
    "Offset": "groups",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
