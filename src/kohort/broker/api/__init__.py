"""Every API that is served: one module each, which registers its handler with the versions that it knows.

A handler takes the broker and a `Call`, and sees to it that the call is answered once, at once or later. ApiVersions
tells clients what is registered here; there is no other list.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kohort.broker.security.permission import Permission

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.peer import Peer

Handler = Callable[["Broker", "Call"], None]
AtOnce = Callable[["Broker", "Peer", bytes, int, int], bytes | None]
"""Takes a request, where its body begins and its version. The whole answer; or None, and nothing has happened."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API and the versions of it that are served."""

    key: int
    first: int
    last: int
    handle: Handler
    told_from: int
    """The first version that clients are told of."""
    permissions: tuple[Permission, ...] = ()
    """What its requests need. Not all of them are needed for every request."""
    tells: tuple[Permission, ...] = ()
    """What its answers tell whether who asks has it (KIP-430)."""
    at_once: AtOnce | None = None
    """Asked before `handle`, without a `Call`: for the requests that come most often."""


_APIS: dict[int, Api] = {}


def api(
    key: int,
    first: int,
    last: int,
    *,
    told_from: int | None = None,
    permissions: tuple[Permission, ...] = (),
    tells: tuple[Permission, ...] = (),
    at_once: AtOnce | None = None,
) -> Callable[[Handler], Handler]:
    """Registers a handler for the versions `first` to `last` of the API with that key."""

    def register(handler: Handler) -> Handler:
        if key in _APIS:
            raise ValueError(f"API {key} is served twice")
        told = first if told_from is None else told_from
        _APIS[key] = Api(key, first, last, handler, told, permissions, tells, at_once)
        return handler

    return register


def all_apis() -> dict[int, Api]:
    """What is served, by key. Imports every module of this package."""
    _import_every_module()
    return dict(sorted(_APIS.items()))


@cache
def _import_every_module() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
