"""Requests that do not go well: delayed, dropped, or failed, as a test has ordered.

Each order is a `Fault` that waits for requests of one API and takes so many of them. Orders are served in the order in
which they were given; as long as there is one for an API, its handler in the server's table is replaced by one that
asks here first, and put back when the last one is used up.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import TracebackType
from typing import Any, Self

from kohort.broker.api import Api, all_apis
from kohort.broker.broker import Broker
from kohort.broker.call import Call
from kohort.broker.server import Server
from kohort.errors import ErrorCode
from kohort.testing.error_answers import error_answer, with_error
from kohort.testing.refusals import NotPossible

Pass = Callable[[Call], None]
"""Lets the broker serve a request after all."""
Action = Callable[["Fault", Call, Pass], None]
When = Callable[[Any], bool]

_PATIENCE_S = 30.0
_PRODUCE = 0
_LOOK_ONLY = {3, 35}
"""Metadata and DescribeLogDirs may ask about everything there is, which only the broker can tell."""


class Fault:
    """One order. As a context manager it ends with its block, used up or not."""

    def __init__(
        self,
        faults: "Faults",
        api_key: int,
        action: Action,
        times: int | None,
        when: When | None,
        client_id: str | None,
    ) -> None:
        self._faults = faults
        self.api_key = api_key
        self._action = action
        self._left = times
        self._when = when
        self._client_id = client_id
        self._changed = threading.Condition()
        self._taken = 0
        self._held: list[Callable[[], None]] = []
        self.ends_with_broker = False

    @property
    def taken(self) -> int:
        """How many requests it has met."""
        return self._taken

    def wait(self, count: int = 1, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until it has met so many requests; `TimeoutError` if they do not come."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._taken >= count, timeout_s):
                raise TimeoutError(f"{self._taken} of {count} requests came in {timeout_s} s")

    def release(self) -> None:
        """Let requests go on that are delayed or held, and meet no more of them."""
        self.cancel()
        self._faults.on_loop(self._release_held)

    def cancel(self) -> None:
        """Meet no more requests. Those that are delayed or held stay so."""
        self._faults.on_loop(lambda: self._faults.remove(self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()

    # Called in the broker's thread

    def wants(self, call: Call) -> bool:
        is_client = self._client_id is None or call.client_id == self._client_id
        return is_client and (self._when is None or self._when(call.request))

    def take(self, call: Call, go_on: Pass) -> bool:
        """Do to a request what was ordered. Returns whether there are more to come."""
        if self._left is not None:
            self._left -= 1
        self._action(self, call, go_on)
        with self._changed:
            self._taken += 1
            self._changed.notify_all()
        return self._left is None or self._left > 0

    def hold(self, go_on: Callable[[], None]) -> None:
        self._held.append(go_on)

    def forget(self, go_on: Callable[[], None]) -> bool:
        """Whether it was held until now."""
        is_held = go_on in self._held
        if is_held:
            self._held.remove(go_on)
        return is_held

    def _release_held(self) -> None:
        held, self._held = self._held, []
        for go_on in held:
            go_on()


class Faults:
    """All orders of one broker; they outlive its restarts."""

    def __init__(self, on_loop: Callable[[Callable[[], None]], None]) -> None:
        self.on_loop = on_loop
        """Runs something where the broker runs, or at once if it does not."""
        self._orders: list[Fault] = []
        self._server: Server | None = None
        self._own: dict[int, Api] = {}

    def order(
        self,
        api: str | int,
        action: Action,
        *,
        times: int | None = 1,
        when: When | None = None,
        client_id: str | None = None,
        ends_with_broker: bool = False,
    ) -> Fault:
        """Meet the next requests of an API, so many of them or all; of one life of the broker, or of all."""
        if times is not None and times < 1:
            raise ValueError(f"{times} times")
        fault = Fault(self, key_of(api), action, times, when, client_id)
        fault.ends_with_broker = ends_with_broker

        def add() -> None:
            self._orders.append(fault)
            self._step_in(fault.api_key)

        self.on_loop(add)
        return fault

    # Called in the broker's thread, or while there is none

    def attach(self, server: Server) -> None:
        """A broker has started."""
        self._server, self._own = server, dict(server.apis)
        for fault in self._orders:
            self._step_in(fault.api_key)

    def detach(self) -> None:
        """It has ended, and with it all connections: what was held is forgotten."""
        self._server = None
        self._orders = [fault for fault in self._orders if not fault.ends_with_broker]

    def remove(self, fault: Fault) -> None:
        if fault in self._orders:
            self._orders.remove(fault)
            if self._server is not None and not any(one.api_key == fault.api_key for one in self._orders):
                self._server.apis[fault.api_key] = self._own[fault.api_key]

    def _step_in(self, api_key: int) -> None:
        if self._server is not None:
            self._server.apis[api_key] = replace(self._own[api_key], handle=self._handle, at_once=None)

    def _handle(self, broker: Broker, call: Call) -> None:
        own, server = self._own[call.api_key], self._server

        def go_on(relayed: Call) -> None:
            if self._server is server:
                own.handle(broker, relayed)
                broker.wake_timers()

        for fault in self._orders:
            if fault.api_key == call.api_key and fault.wants(call):
                if not fault.take(call, go_on):
                    self.remove(fault)
                return
        own.handle(broker, call)


def fail_with(error: ErrorCode, *, applied: bool) -> Action:
    """Answer the error; the broker does what was asked all the same if it is to be `applied`."""

    def act(_: Fault, call: Call, go_on: Pass) -> None:
        if applied or call.api_key in _LOOK_ONLY:
            go_on(call.relayed(lambda _, body, __: _answer(call, body, error)))
        elif _wants_no_answer(call):
            call.hang_up(f"failed on purpose: {error.name}")
        else:
            call.answer(error_answer(call, error))

    return act


def _answer(call: Call, body: bytes | None, error: ErrorCode) -> None:
    if body is None:
        call.hang_up(f"failed on purpose: {error.name}")
    else:
        call.answer(with_error(call, body, error))


def drop(*, applied: bool) -> Action:
    """Close the connection in place of an answer."""

    def act(_: Fault, call: Call, go_on: Pass) -> None:
        if applied:
            go_on(call.relayed(lambda _, __, ___: call.hang_up("dropped on purpose")))
        else:
            call.hang_up("dropped on purpose")

    return act


def hold(call_later: Callable[[Callable[[], None]], None] | None = None) -> Action:
    """Keep the request back until it is released, or until it is called later."""

    def act(fault: Fault, call: Call, go_on: Pass) -> None:
        def serve() -> None:
            go_on(call)

        fault.hold(serve)
        if call_later is not None:
            call_later(lambda: serve() if fault.forget(serve) else None)

    return act


def _wants_no_answer(call: Call) -> bool:
    """A producer that wants no answer learns of a failure by losing its connection."""
    return call.api_key == _PRODUCE and call.request.acks == 0


def key_of(api: str | int) -> int:
    """The key of an API that is given by its name ("OffsetCommit") or its key."""
    if isinstance(api, int):
        if api not in _keys().values():
            raise NotPossible(f"there is no API {api}")
        return api
    found = _keys().get(api.lower().replace("_", ""))
    if found is None:
        raise NotPossible(f"there is no API {api!r}")
    return found


def error_of(error: str | int) -> ErrorCode:
    """An error that is given by its name ("NOT_COORDINATOR") or its number."""
    try:
        return ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        raise NotPossible(f"there is no error {error!r}") from None


@cache
def _keys() -> dict[str, int]:
    """Handlers are named after their APIs."""
    return {api.handle.__name__.replace("_", ""): key for key, api in all_apis().items()}
