"""Access control lists: who may or may not do what with which resources, with Kafka's names and numbers.

An entry says of one principal (or `User:*`, everybody), from one address (or `*`, anywhere), whether it may do one
operation with the resources of a pattern: one of that name, all whose names begin so, or all of a type (`*`).
"""

from collections.abc import Sequence
from enum import IntEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple, TypeVar

from kohort.errors import ClientError, ErrorCode


class ResourceType(IntEnum):
    """What there are permissions for."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a name stands for resources. Only filters know ANY and MATCH (all patterns that fit a name)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What can be done with a resource. ANY is for filters."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class PermissionType(IntEnum):
    """What an entry says. ANY is for filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
ANYTHING = "*"
"""The name that stands for all resources of a type, and the host that stands for all."""
EVERYBODY = "User:*"

LONGEST_NAME = 0x7FFF
LONGEST_PRINCIPAL = 4_096
_LONGEST_ADDRESS = 100
_ANY = 1
"""In all four kinds of numbers."""


class BadAcl(ClientError):
    """An entry that there cannot be, or a filter that means nothing."""

    code = ErrorCode.INVALID_REQUEST


class Acl(NamedTuple):
    """One entry."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str
    principal: str
    host: str
    operation: Operation
    permission: PermissionType

    @classmethod
    def of(cls, numbers: Sequence[int], name: str, principal: str, host: str) -> "Acl":
        """The entry with these numbers (resource type, pattern type, operation, permission type); `BadAcl` if there
        can be none. A host that is no address would never fit, and a deny for it would be none, so it is refused."""
        resource_type, pattern_type, operation, permission = numbers
        address = canonical_host(host)
        if address is None:
            raise BadAcl("a host is an address or *")
        acl = cls(
            _concrete(ResourceType, resource_type, "resource type"),
            _concrete(PatternType, pattern_type, "pattern type"),
            name,
            principal,
            address,
            _concrete(Operation, operation, "operation"),
            _concrete(PermissionType, permission, "permission type"),
        )
        if acl.pattern_type is PatternType.MATCH:
            raise BadAcl("pattern type MATCH is for filters")
        if acl.resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
            raise BadAcl(f"the cluster is called {CLUSTER_NAME}, and nothing else")
        if not name or len(name.encode("utf-8", "replace")) > LONGEST_NAME:
            raise BadAcl(f"a resource has a name of 1 to {LONGEST_NAME} bytes")
        kind, _, who = principal.partition(":")
        if not kind or not who or len(principal) > LONGEST_PRINCIPAL:
            raise BadAcl("a principal is written TYPE:NAME, as in User:alice")
        return acl

    @property
    def key(self) -> tuple[str, ...]:
        """As the security log has it."""
        return (
            "acl",
            self.resource_type.name,
            self.pattern_type.name,
            self.name,
            self.principal,
            self.host,
            self.operation.name,
            self.permission.name,
        )

    @classmethod
    def from_key(cls, key: Sequence[str]) -> "Acl":
        """`ValueError` if it is no key that we write."""
        try:
            _, resource_type, pattern_type, name, principal, host, operation, permission = key
            numbers = (
                ResourceType[resource_type],
                PatternType[pattern_type],
                Operation[operation],
                PermissionType[permission],
            )
            return cls.of(numbers, name, principal, host)
        except (KeyError, BadAcl) as error:
            raise ValueError(f"no entry of an access control list: {error}") from error


class AclFilter(NamedTuple):
    """Which entries are meant. None fits everything."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str | None
    principal: str | None
    host: str | None
    operation: Operation
    permission: PermissionType

    @classmethod
    def of(cls, numbers: Sequence[int], name: str | None, principal: str | None, host: str | None) -> "AclFilter":
        """`BadAcl` if one of the numbers stands for nothing."""
        resource_type, pattern_type, operation, permission = numbers
        return cls(
            _known(ResourceType, resource_type, "resource type"),
            _known(PatternType, pattern_type, "pattern type"),
            name,
            principal,
            None if host is None else canonical_host(host) or host,
            _known(Operation, operation, "operation"),
            _known(PermissionType, permission, "permission type"),
        )

    @property
    def only(self) -> Acl | None:
        """The one entry that it can fit; None if it can fit several."""
        resource_type, pattern_type, name, principal, host, operation, permission = self
        if _ANY in (resource_type, pattern_type, operation, permission) or pattern_type is PatternType.MATCH:
            return None
        if name is None or principal is None or host is None:
            return None
        return Acl(resource_type, pattern_type, name, principal, host, operation, permission)

    def fits(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (PermissionType.ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._fits_pattern(acl)
        )

    def _fits_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if acl.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == ANYTHING


def canonical_host(host: str) -> str | None:
    """An address as it is compared: one text for each, whichever way it is written; None for what is no address."""
    if host == ANYTHING:
        return host
    if len(host) > _LONGEST_ADDRESS:
        return None
    try:
        return str(IPv4Address(host))
    except AddressValueError:
        pass
    try:
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return None
    return str(address.ipv4_mapped or address)


T = TypeVar("T", bound=IntEnum)


def _known(kind: type[T], number: int, called: str) -> T:
    try:
        return kind(number)
    except ValueError:
        raise BadAcl(f"there is no {called} {number}") from None


def _concrete(kind: type[T], number: int, called: str) -> T:
    if number == _ANY:
        raise BadAcl(f"{called} ANY is for filters")
    return _known(kind, number, called)
