"""Whom a quota is for: a user, a client id, or both, of which each may be the default, that is whoever has no own.

An entity is written as pairs of a kind and a name, None for the default, the kinds in order: so it can be a key. In the
security log it is a row of strings that begins with `quota`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kohort.errors import ClientError, ErrorCode

QUOTA = "quota"
USER, CLIENT_ID = "user", "client-id"
KINDS = (CLIENT_ID, USER)
_DEFAULT = "-default"

PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
_WHOLE = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
KEYS = (*_WHOLE, REQUEST_PERCENTAGE)
"""What can be limited: bytes a second, and per cent of the time of the thread that serves requests."""
_LARGEST = float(1 << 63)
_EPSILON = 1e-6

Entity = tuple[tuple[str, str | None], ...]
Quotas = Mapping[str, float]


class BadQuota(ClientError):
    """A quota for somebody or of something that there cannot be."""

    code = ErrorCode.INVALID_REQUEST


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity of these kinds and names; `BadQuota` if there is none."""
    given = list(parts)
    if not given:
        raise BadQuota("a quota has to be for a user or a client id")
    found: dict[str, str | None] = {}
    for kind, name in given:
        if kind not in KINDS:
            raise BadQuota(f"there are no quotas for entities of the kind {kind!r}")
        if kind in found:
            raise BadQuota(f"the entity has more than one {kind}")
        if name == "":
            raise BadQuota(f"the {kind} has no name")
        found[kind] = name
    return tuple(sorted(found.items()))


def precedence(user: str, client_id: str) -> Iterator[Entity]:
    """Whose quota counts for this user with this client id, from the strongest to the weakest, as in Kafka."""
    for user_name in (user, None):
        for client_name in (client_id, None):
            yield ((CLIENT_ID, client_name), (USER, user_name))
        yield ((USER, user_name),)
    for client_name in (client_id, None):
        yield ((CLIENT_ID, client_name),)


def checked_quota(key: str, value: float) -> float:
    """`BadQuota` if this cannot be limited, or not to this."""
    if key not in KEYS:
        raise BadQuota(f"there is no quota {key!r}; there are {', '.join(KEYS)}")
    if not 0 < value < _LARGEST:
        raise BadQuota(f"{key} must be greater than 0, not {value:g}")
    if key in _WHOLE and abs(round(value) - value) > _EPSILON:
        raise BadQuota(f"{key} must be a whole number, not {value:g}")
    return float(round(value)) if key in _WHOLE else value


def log_key(entity: Entity) -> tuple[str, ...]:
    """How the security log names it."""
    parts = [(f"{kind}{_DEFAULT}", "") if name is None else (kind, name) for kind, name in entity]
    return (QUOTA, *(text for part in parts for text in part))


def entity_of_key(key: tuple[str, ...]) -> Entity:
    """The entity behind `log_key`."""
    kinds, names = key[1::2], key[2::2]
    return tuple(
        (kind.removesuffix(_DEFAULT), None if kind.endswith(_DEFAULT) else name)
        for kind, name in zip(kinds, names, strict=True)
    )


def quotas_of(fact: Mapping[str, Any]) -> Quotas:
    """What the log tells of an entity; what it does not know how to keep is passed over."""
    return {key: float(fact[key]) for key in KEYS if isinstance(fact.get(key), int | float)}
