"""One request that waits for its answer."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kohort.broker.peer import Peer
from kohort.broker.schemas import api_name
from kohort.broker.security.acl import CLUSTER_NAME
from kohort.broker.security.permission import Permission
from kohort.broker.security.principal import Principal
from kohort.broker.wire import RequestHeader, read_body, response_head, schema_of
from kohort.errors import IllegalState

if TYPE_CHECKING:
    from kohort.broker.authentication import Authenticator
    from kohort.broker.security.authorizer import Authorizer
    from kohort.broker.security.listeners import Address

Send = Callable[["Call", bytes | None, Sequence[int]], None]
"""Takes the answer to a call, if there is one, and the error codes that it tells."""


class Call:
    """What a handler gets: the request, who sent it, and the way back."""

    is_metered = False
    """Whether its sender has quotas, and it is a `MeteredCall`."""

    __slots__ = (
        "_close",
        "_header",
        "_request",
        "_send",
        "began",
        "frame",
        "has_its_place",
        "kept_answer",
        "peer",
    )

    def __init__(
        self, header: RequestHeader, frame: bytes, peer: Peer, send: Send, close: Callable[[str], None]
    ) -> None:
        self._header = header
        self._send: Send | None = send
        self._close = close
        self._request: Any = None
        self.frame = frame
        """The request as it came, with its header."""
        self.peer = peer
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
    def client_host(self) -> str:
        return self.peer.host

    @property
    def principal(self) -> Principal:
        return self.peer.principal

    @property
    def authenticator(self) -> "Authenticator | None":
        return self.peer.authenticator

    @property
    def authorizer(self) -> "Authorizer | None":
        return self.peer.authorizer

    @property
    def told_address(self) -> "Address | None":
        return self.peer.told_address

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

    def may(self, permission: Permission, name: str = CLUSTER_NAME) -> bool:
        """Whether who asks may do this; that it was refused is noted."""
        if self.authorizer is None or self.authorizer.may(self.principal, self.client_host, permission, name):
            return True
        self._note_refusal(self.authorizer, permission, [name])
        return False

    def might(self, permission: Permission, name: str = CLUSTER_NAME) -> bool:
        """The same where nobody has asked for just this."""
        return self.authorizer is None or self.authorizer.may(self.principal, self.client_host, permission, name)

    def might_somewhere(self, permission: Permission) -> bool:
        """Whether there may be anything with which who asks may do this."""
        return self.authorizer is None or self.authorizer.may_somewhere(self.principal, self.client_host, permission)

    def refused(self, permission: Permission, names: Iterable[str | None]) -> Container[str | None]:
        """Those of the resources with which who asks may not do this; it is noted. None is no resource's name."""
        if self.authorizer is None:
            return ()
        refused = {name for name in names if name is not None and not self.might(permission, name)}
        if refused:
            self._note_refusal(self.authorizer, permission, refused)
        return refused

    def _note_refusal(self, authorizer: "Authorizer", permission: Permission, names: Collection[str]) -> None:
        asked = api_name(self.api_key, self.version)
        authorizer.note_refusal(self.principal, self.client_host, permission, names, asked)

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

    def hear_no_more(self, reason: str) -> None:
        """End the connection when this is answered; what comes behind it is not looked at."""
        self._close(reason)

    def answer_bytes(self, body: bytes, errors: Sequence[int] = ()) -> None:
        """Send an answer that was written by hand, header and all, which tells these errors."""
        self._finish(body, errors)

    def relayed(self, send: Send) -> "Call":
        """The same request with another way back: how `kohort.testing` gets an answer before the client does."""
        return Call(self._header, self.frame, self.peer, send, self._close)

    def _finish(self, body: bytes | None, errors: Sequence[int] = ()) -> None:
        send, self._send = self._send, None
        if send is None:
            raise IllegalState(f"API {self.api_key} answered a request twice")
        send(self, body, errors)
