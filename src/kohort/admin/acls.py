"""Entries of a cluster's access control lists: told, made and removed."""

from collections.abc import Sequence
from typing import Any

from kohort.admin.cluster import Cluster
from kohort.admin.messages import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from kohort.admin.refusals import in_words
from kohort.broker.security.acl import Acl, AclFilter, Operation, PatternType, PermissionType, ResourceType


def list_acls(cluster: Cluster, wanted: Sequence[AclFilter]) -> list[Acl]:
    """All entries that fit one of these, each once."""
    found: dict[Acl, None] = {}
    for one in wanted:
        answer = cluster.run(cluster.ask_any(DESCRIBE_ACLS, **_filter(one)))
        cluster.refuse(answer.error_code, "its access control lists")
        for resource in answer.resources:
            for told in resource.acls:
                found[_read(cluster, resource, told)] = None
    return sorted(found)


def create_acls(cluster: Cluster, acls: Sequence[Acl]) -> dict[Acl, str | None]:
    """Make entries; each with the reason why it is not there, or None."""
    answer = cluster.run(cluster.ask_any(CREATE_ACLS, creations=[_creation(acl) for acl in acls]))
    return {acl: _reason(told.error_code, told.error_message) for acl, told in zip(acls, answer.results, strict=True)}


def delete_acls(cluster: Cluster, wanted: Sequence[AclFilter]) -> dict[Acl, str | None]:
    """Remove all entries that fit; each with the reason why it is still there, or None."""
    answer = cluster.run(cluster.ask_any(DELETE_ACLS, filters=[_filter(one) for one in wanted]))
    found: dict[Acl, str | None] = {}
    for result in answer.filter_results:
        cluster.refuse(result.error_code, "its access control lists")
        for told in result.matching_acls:
            found[_read(cluster, told, told)] = _reason(told.error_code, told.error_message)
    return dict(sorted(found.items()))


def _creation(acl: Acl) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.name,
        "resource_pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }


def _filter(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _read(cluster: Cluster, resource: Any, told: Any) -> Acl:
    """As the cluster has it, whatever another one would make of its host."""
    try:
        return Acl(
            ResourceType(resource.resource_type),
            PatternType(resource.pattern_type),
            resource.resource_name,
            told.principal,
            told.host,
            Operation(told.operation),
            PermissionType(told.permission_type),
        )
    except ValueError as error:
        raise cluster.failure(f"has an entry of a kind that is not known here: {error}") from None


def _reason(code: int, message: str | None) -> str | None:
    return (f"{message} ({in_words(code)})" if message else in_words(code)) if code else None
