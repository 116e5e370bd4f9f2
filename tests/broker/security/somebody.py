"""Clients that are somebody, and what they may do."""

import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kohort.broker.authentication import Reply, Told
from kohort.broker.security.acl import Acl, Operation, PatternType, PermissionType, ResourceType
from kohort.broker.security.authorizer import Authorizer
from kohort.broker.security.principal import ANONYMOUS, USER, Principal
from kohort.errors import ErrorCode
from kohort.log.files import Files
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
PASSWORD = "secret"
ROOT = "root"
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"User:{ROOT}",
}


class Plain:
    """PLAIN as clients speak it: whoever knows the password is who he says he is."""

    def __init__(self) -> None:
        self.principal: Principal = ANONYMOUS

    @property
    def mechanisms(self) -> Sequence[str]:
        return ("PLAIN",)

    @property
    def is_authenticated(self) -> bool:
        return self.principal is not ANONYMOUS

    @property
    def is_expired(self) -> bool:
        return False

    def handshake(self, mechanism: str) -> ErrorCode:
        return ErrorCode.NONE if mechanism in self.mechanisms else ErrorCode.UNSUPPORTED_SASL_MECHANISM

    def authenticate(self, data: bytes, told: Told) -> None:
        _, name, password = data.decode().split("\0")
        if not hmac.compare_digest(password, PASSWORD):
            told(Reply(ErrorCode.SASL_AUTHENTICATION_FAILED, "wrong password"))
            return
        self.principal = Principal(USER, name)
        told(Reply(ErrorCode.NONE))


@contextmanager
def authorizing(path: Path | None = None, *, files: Files | None = None, **settings: str) -> Iterator[Running]:
    """A broker where everybody has to log in, and root may do everything."""
    given = AUTHORIZED | {name.replace("_", "."): value for name, value in settings.items()}
    with running(path, given, files=files) as broker:
        broker.on_loop(lambda: setattr(broker.server.entrances[0], "new_authenticator", Plain))
        yield broker


def somebody(broker: Running, name: str) -> WireClient:
    """A client that has logged in."""
    client = broker.client()
    assert client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN").error_code == ErrorCode.NONE
    answer = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=f"\0{name}\0{PASSWORD}".encode())
    assert answer.error_code == ErrorCode.NONE
    return client


def entry(
    principal: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str = "kafka-cluster",
    *,
    deny: bool = False,
    host: str = "*",
    prefixed: bool = False,
) -> Acl:
    """An entry; principals are users unless they say otherwise."""
    return Acl(
        resource_type,
        PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        name,
        principal if ":" in principal else f"{USER}:{principal}",
        host,
        operation,
        PermissionType.DENY if deny else PermissionType.ALLOW,
    )


def authorizer_of(broker: Running) -> Authorizer:
    authorizer = broker.broker.authorizer
    assert authorizer is not None
    return authorizer


def create(broker: Running, *acls: Acl) -> None:
    """Returns when they count."""
    told: list[ErrorCode] = []
    broker.on_loop(lambda: authorizer_of(broker).create(acls, told.append))
    _await(broker, told)


def delete(broker: Running, *acls: Acl) -> None:
    """Returns when they do not count any more."""
    told: list[ErrorCode] = []
    broker.on_loop(lambda: authorizer_of(broker).delete(acls, told.append))
    _await(broker, told)


def _await(broker: Running, told: list[ErrorCode]) -> None:
    while not told:
        broker.on_loop(lambda: None)
    assert told == [ErrorCode.NONE]
