"""DescribeClientQuotas and AlterClientQuotas in few words."""

from typing import Any

from tests.broker.wire_client import WireClient

DESCRIBE_CLIENT_QUOTAS, ALTER_CLIENT_QUOTAS = 48, 49
EXACT, DEFAULT, ANY = 0, 1, 2


def entity(**names: str | None) -> list[dict[str, Any]]:
    """`user` and `client_id`; None is the default."""
    return [{"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in names.items()]


def op(key: str, value: float | None) -> dict[str, Any]:
    return {"key": key, "value": value or 0, "remove": value is None}


def alter_all(client: WireClient, *entries: Any, version: int = 1, validate_only: bool = False) -> list[int]:
    """Entities with their operations; the error of each."""
    told = client.ask(
        ALTER_CLIENT_QUOTAS,
        version,
        entries=[{"entity": whom, "ops": ops} for whom, ops in entries],
        validate_only=validate_only,
    ).entries
    return [int(entry.error_code) for entry in told]


def alter(client: WireClient, whom: list[dict[str, Any]], **quotas: float | None) -> None:
    """Set quotas, or remove those that are None."""
    assert alter_all(client, (whom, [op(key, value) for key, value in quotas.items()])) == [0]


def component(kind: str, match_type: int, match: str | None = None) -> dict[str, Any]:
    return {"entity_type": kind, "match_type": match_type, "match": match}


def describe(client: WireClient, *components: Any, strict: bool = False, version: int = 1) -> Any:
    return client.ask(DESCRIBE_CLIENT_QUOTAS, version, components=list(components), strict=strict)


def described(client: WireClient, *components: Any, strict: bool = False, version: int = 1) -> list[Any]:
    """Entities with their quotas."""
    answer = describe(client, *components, strict=strict, version=version)
    assert answer.error_code == 0
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]
