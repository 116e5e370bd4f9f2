"""What a set of entries allows, found without looking at all of them.

Entries are kept by what they are for: of each pattern (a name, a prefix, or `*`) one number for each principal and
host, with a bit for each operation that is allowed and one for each that is denied. A question looks at the few
patterns that fit its resource: its own name, `*`, and its beginnings, of as many lengths as there are prefixes of.

A deny wins. Whoever is allowed to read, write, delete or alter may also describe, whoever may alter settings may see
them, and ALL is everything; denying one thing denies no other, except ALL.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kohort.broker.security.acl import ANYTHING, EVERYBODY, Acl, Operation, PatternType, PermissionType, ResourceType

_Bits = dict[tuple[str, str], int]
"""What is said of one pattern, by principal and host."""

_DENIED = 16
"""Bits from here on are denials."""

_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


_ALLOWING = {one: _bits((one, *_IMPLIED_BY.get(one, ()), *{Operation.ALL} - {one})) for one in Operation}
_DENYING = {one: _bits({one, Operation.ALL}) << _DENIED for one in Operation}


class AclRules:
    """The entries that count now. Principals and hosts are compared as they are written."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls: dict[Acl, None] = {}
        self._literal: dict[tuple[ResourceType, str], _Bits] = {}
        self._prefixed: dict[tuple[ResourceType, str], _Bits] = {}
        self._lengths: dict[ResourceType, Counter[int]] = {}
        """Of the prefixes of each type."""
        for acl in acls:
            self.add(acl)

    def __len__(self) -> int:
        return len(self._acls)

    def __iter__(self) -> Iterator[Acl]:
        return iter(self._acls)

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._acls

    def add(self, acl: Acl) -> None:
        if acl in self._acls:
            return
        self._acls[acl] = None
        patterns, place = self._patterns(acl), (acl.resource_type, acl.name)
        if place not in patterns:
            patterns[place] = {}
            if acl.pattern_type is PatternType.PREFIXED:
                self._lengths.setdefault(acl.resource_type, Counter())[len(acl.name)] += 1
        bits, who = patterns[place], (acl.principal, acl.host)
        bits[who] = bits.get(who, 0) | _bit(acl)

    def remove(self, acl: Acl) -> None:
        if acl not in self._acls:
            return
        del self._acls[acl]
        patterns, place = self._patterns(acl), (acl.resource_type, acl.name)
        bits, who = patterns[place], (acl.principal, acl.host)
        bits[who] &= ~_bit(acl)
        if not bits[who]:
            del bits[who]
        if not bits:
            del patterns[place]
            if acl.pattern_type is PatternType.PREFIXED:
                lengths = self._lengths[acl.resource_type]
                lengths[len(acl.name)] -= 1
                lengths += Counter()  # without those of which there are none

    def may(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str, *, if_none: bool
    ) -> bool:
        """Whether this is allowed; `if_none` where nothing at all is said of the resource."""
        fitting = list(self._fitting(resource_type, name))
        if not fitting:
            return if_none
        said = 0
        for bits in fitting:
            said |= _said_of(bits, principal, host)
        return not said & _DENYING[operation] and bool(said & _ALLOWING[operation])

    def may_somewhere(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, *, if_none: bool
    ) -> bool:
        """Whether this is allowed for some resource of a type that there may be (KIP-679). Looks at all patterns."""
        literal, prefixed = (
            {name: _said_of(bits, principal, host) for (kind, name), bits in patterns.items() if kind is resource_type}
            for patterns in (self._literal, self._prefixed)
        )
        allowing, denying = _ALLOWING[operation], _DENYING[operation]
        if literal.get(ANYTHING, 0) & denying:
            return False
        if if_none or literal.get(ANYTHING, 0) & allowing:
            return True
        denied = {name for name, said in prefixed.items() if said & denying}
        lengths = sorted({len(name) for name in denied})

        def is_denied(name: str) -> bool:
            return any(name[:length] in denied for length in lengths if length <= len(name))

        return any(
            said & allowing and not said & denying and not is_denied(name)
            for name, said in (*literal.items(), *prefixed.items())
        )

    def _patterns(self, acl: Acl) -> dict[tuple[ResourceType, str], _Bits]:
        return self._prefixed if acl.pattern_type is PatternType.PREFIXED else self._literal

    def _fitting(self, resource_type: ResourceType, name: str) -> Iterator[_Bits]:
        """What is said of patterns that a resource fits."""
        for literal in {name, ANYTHING}:
            if (bits := self._literal.get((resource_type, literal))) is not None:
                yield bits
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name) and (bits := self._prefixed.get((resource_type, name[:length]))) is not None:
                yield bits


def _bit(acl: Acl) -> int:
    return 1 << acl.operation << (_DENIED if acl.permission is PermissionType.DENY else 0)


def _said_of(bits: _Bits, principal: str, host: str) -> int:
    get: Callable[[tuple[str, str], int], int] = bits.get
    return (
        get((principal, host), 0)
        | get((principal, ANYTHING), 0)
        | get((EVERYBODY, host), 0)
        | get((EVERYBODY, ANYTHING), 0)
    )
