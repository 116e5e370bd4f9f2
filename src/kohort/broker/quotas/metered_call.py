"""A request whose sender has quotas: what it costs is counted, and who takes too much has to wait.

As since Kafka 2.0 (KIP-219) the answer goes out at once and tells how long that is; meanwhile nothing more is read or
served on the connection. A fetch that is too much is answered without records, which then do not count. Time counts
as far as the thread that serves requests was busy with this one, in per cent of all of its time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from time import perf_counter
from typing import Any

from kohort.broker.call import Call
from kohort.broker.quotas.client_quotas import ClientQuotas
from kohort.broker.schemas import load_response_schema
from kohort.broker.wire import response_head, schema_of

_PRODUCE = 0
_THROTTLE_TIME = "throttle_time"
_LARGEST = (1 << 31) - 1


class MeteredCall(Call):
    """A call that knows what its sender may have."""

    __slots__ = ("_busy_since", "_delay_ms", "_mute", "_quotas", "_shares")

    is_metered = True

    def __init__(self, call: Call, quotas: ClientQuotas, mute: Callable[[int], None]) -> None:
        for name in Call.__slots__:
            setattr(self, name, getattr(call, name))
        self._quotas = quotas
        self._mute = mute
        self._shares = quotas.shares_of(call.principal.name, call.client_id or "")
        self._busy_since: float | None = self.began
        """None while it waits for something and nobody works at it."""
        self._delay_ms: int | None = None
        """Known when it is about to be answered."""

    def rest(self) -> None:
        """Its handler is done, whether or not it is answered yet."""
        self._count_time()
        self._busy_since = None

    @property
    def most_to_fetch(self) -> int:
        """What is more than this at once is never within the quota."""
        share = self._shares.fetch
        if share is None:
            return _LARGEST
        return max(1, int(min(share.bound * self._quotas.longest_burst_s, _LARGEST)))

    def is_too_much(self, fetched: int) -> bool:
        now_ms, share = self._quotas.now_ms(), self._shares.fetch
        fetch_ms = 0 if share is None else share.take(fetched, now_ms)
        self._delay_ms = min(max(fetch_ms, self._count_time()), _LARGEST)
        if self._delay_ms and share is not None:
            share.give_back(fetched, now_ms)
        return self._delay_ms > 0

    def answer(self, values: Mapping[str, Any]) -> None:
        delay_ms = self._counted()
        super().answer({**values, _THROTTLE_TIME: delay_ms} if delay_ms else values)

    def _finish(self, body: bytes | None, errors: Sequence[int] = ()) -> None:
        if delay_ms := self._counted():
            self._quotas.throttled += 1
            self._mute(delay_ms)
            if body is not None and _begins_with_throttle_time(self.api_key, self.version):
                at = len(response_head(self._header, schema_of(self.api_key, self.version)))
                body = body[:at] + delay_ms.to_bytes(4, "big") + body[at + 4 :]
        super()._finish(body, errors)

    def _counted(self) -> int:
        """How long the client has to wait."""
        if self._delay_ms is None:
            delay_ms, share = self._count_time(), self._shares.produce
            if share is not None and self.api_key == _PRODUCE:
                delay_ms = max(delay_ms, share.take(len(self.frame), self._quotas.now_ms()))
            self._delay_ms = min(delay_ms, _LARGEST)
        return self._delay_ms

    def _count_time(self) -> int:
        """Of what it has cost since this was called last."""
        share, since = self._shares.request, self._busy_since
        if share is None:
            return 0
        now = perf_counter()
        self._busy_since = None if since is None else now
        busy_s = 0 if since is None else now - since
        return min(share.take(100 * busy_s, self._quotas.now_ms()), self._quotas.longest_request_ms)


@cache
def _begins_with_throttle_time(api_key: int, version: int) -> bool:
    return fields(load_response_schema(api_key, version))[0].name == _THROTTLE_TIME
