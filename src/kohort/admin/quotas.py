"""Quotas of users and client ids: described, set and removed."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kohort.admin.cluster import Cluster
from kohort.admin.messages import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from kohort.admin.refusals import in_words

USER, CLIENT_ID = "user", "client-id"
_EXACT, _DEFAULT = 0, 1

Names = Mapping[str, str | None]
"""Whom a quota is for: a user, a client id or both, each by name or None for the default."""


class Quotas(NamedTuple):
    """All quotas of one entity."""

    names: Names
    values: Mapping[str, float]


def list_quotas(cluster: Cluster, names: Names) -> list[Quotas]:
    """All quotas, or those that are also for these."""
    components = [
        {"entity_type": kind, "match_type": _DEFAULT if name is None else _EXACT, "match": name}
        for kind, name in names.items()
    ]
    answer = cluster.run(cluster.ask_any(DESCRIBE_CLIENT_QUOTAS, components=components, strict=False))
    if answer.error_code:
        raise cluster.failure(_told(answer))
    found = [
        Quotas(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in sorted(entry.values, key=lambda value: value.key)},
        )
        for entry in answer.entries or ()
    ]
    return sorted(found, key=lambda quotas: sorted((kind, name or "") for kind, name in quotas.names.items()))


def alter_quotas(cluster: Cluster, names: Names, values: Mapping[str, float], remove: Sequence[str] = ()) -> None:
    """Set these quotas and remove those."""
    ops = [{"key": key, "value": value, "remove": False} for key, value in values.items()]
    ops += [{"key": key, "value": 0.0, "remove": True} for key in remove]
    entity = [{"entity_type": kind, "entity_name": name} for kind, name in names.items()]
    answer = cluster.run(
        cluster.ask_any(ALTER_CLIENT_QUOTAS, entries=[{"entity": entity, "ops": ops}], validate_only=False)
    )
    for entry in answer.entries:
        if entry.error_code:
            raise cluster.failure(_told(entry))


def _told(refusal: Any) -> str:
    words = in_words(refusal.error_code)
    return f"{refusal.error_message} ({words})" if refusal.error_message else words
