"""One request that waits for its answer."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from kohort.broker.wire import RequestHeader, Schema, response_head
from kohort.errors import IllegalState

Send = Callable[[bytes | None, Sequence[int]], None]
"""Takes the answer, if there is one, and the error codes that it tells."""


class Call:
    """What a handler gets: the request, who sent it, and the way back."""

    __slots__ = ("_close", "_header", "_schema", "_send", "client_host", "request")

    def __init__(
        self,
        header: RequestHeader,
        schema: Schema,
        request: SimpleNamespace,
        client_host: str,
        send: Send,
        close: Callable[[str], None],
    ) -> None:
        self._header = header
        self._schema = schema
        self._send: Send | None = send
        self._close = close
        self.request = request
        self.client_host = client_host

    @property
    def api_key(self) -> int:
        return self._header.api_key

    @property
    def version(self) -> int:
        return self._header.api_version

    @property
    def client_id(self) -> str | None:
        return self._header.client_id

    def answer(self, values: Mapping[str, Any]) -> None:
        """Send the answer: all that is known, of which this version tells what it has fields for."""
        out = bytearray(response_head(self._header, self._schema))
        self._schema.write(out, values)
        errors: list[int] = []
        if self._schema.find_errors is not None:
            self._schema.find_errors(values, errors)
        self.answer_bytes(bytes(out), errors)

    def answer_nothing(self) -> None:
        """The client does not expect an answer (Produce with acks 0)."""
        self._finish(None)

    def hang_up(self, reason: str) -> None:
        """End the connection in place of an answer."""
        self._close(reason)
        self._finish(None)

    def answer_bytes(self, body: bytes, errors: Sequence[int] = ()) -> None:
        """Send an answer that was written by hand, header and all, which tells these errors."""
        self._finish(body, errors)

    def relayed(self, send: Send) -> "Call":
        """The same request with another way back: how `kohort.testing` gets an answer before the client does."""
        return Call(self._header, self._schema, self.request, self.client_host, send, self._close)

    def _finish(self, body: bytes | None, errors: Sequence[int] = ()) -> None:
        send, self._send = self._send, None
        if send is None:
            raise IllegalState(f"API {self.api_key} answered a request twice")
        send(body, errors)
