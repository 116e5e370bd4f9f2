"""One request that waits for its answer."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kohort.broker.wire import RequestHeader, read_body, response_head, schema_of
from kohort.errors import IllegalState

if TYPE_CHECKING:
    from kohort.broker.authentication import Authenticator

Send = Callable[["Call", bytes | None, Sequence[int]], None]
"""Takes the answer to a call, if there is one, and the error codes that it tells."""


class Call:
    """What a handler gets: the request, who sent it, and the way back."""

    __slots__ = (
        "_close",
        "_header",
        "_request",
        "_send",
        "authenticator",
        "began",
        "client_host",
        "frame",
        "has_its_place",
        "kept_answer",
    )

    def __init__(
        self,
        header: RequestHeader,
        frame: bytes,
        client_host: str,
        send: Send,
        close: Callable[[str], None],
        authenticator: "Authenticator | None" = None,
    ) -> None:
        self._header = header
        self._send: Send | None = send
        self._close = close
        self._request: Any = None
        self.frame = frame
        """The request as it came, with its header."""
        self.client_host = client_host
        self.authenticator = authenticator
        """Who finds out who asks, where that has to be said."""
        self.began = perf_counter()
        self.has_its_place = False
        """Set by a handler when all is done but for the disk: a request of the same kind that is served now comes
        behind this one whatever happens."""
        self.kept_answer: bytes | None = None
        """What the connection sends when it is this call's turn."""

    @property
    def is_answered(self) -> bool:
        return self._send is None

    @property
    def request(self) -> Any:
        """The fields of the request; `BadRequest` if these bytes are none."""
        if self._request is None:
            self._request = read_body(self.frame, self._header, schema_of(self.api_key, self.version))
        return self._request

    @property
    def api_key(self) -> int:
        return self._header.api_key

    @property
    def version(self) -> int:
        return self._header.api_version

    @property
    def client_id(self) -> str | None:
        return self._header.client_id

    @property
    def body_at(self) -> int:
        """Where the header's tagged fields or the body begin in `frame`."""
        return self._header.body_at

    def answer(self, values: Mapping[str, Any]) -> None:
        """Send the answer: all that is known, of which this version tells what it has fields for."""
        schema = schema_of(self.api_key, self.version)
        out = bytearray(response_head(self._header, schema))
        schema.write(out, values)
        errors: list[int] = []
        if schema.find_errors is not None:
            schema.find_errors(values, errors)
        self.answer_bytes(bytes(out), errors)

    def answer_body(self, body: bytes) -> None:
        """Send an answer whose body was written already, and which tells no error."""
        head = response_head(self._header, schema_of(self.api_key, self.version))
        self.answer_bytes(head + body)

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
        return Call(self._header, self.frame, self.client_host, send, self._close, self.authenticator)

    def _finish(self, body: bytes | None, errors: Sequence[int] = ()) -> None:
        send, self._send = self._send, None
        if send is None:
            raise IllegalState(f"API {self.api_key} answered a request twice")
        send(self, body, errors)
