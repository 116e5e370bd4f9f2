"""Entries of access control lists, as the three APIs about them ask for them and tell them."""

from typing import Any

from kohort.broker.api.refusal import Refused
from kohort.broker.security.acl import Acl, AclFilter
from kohort.errors import ErrorCode

SECURITY_DISABLED = Refused(ErrorCode.SECURITY_DISABLED, "there is no authorizer: authorizer.class.name is not set")


def filter_of(asked: Any) -> AclFilter:
    """`BadAcl` if it can be none."""
    numbers = (asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type)
    return AclFilter.of(numbers, asked.resource_name_filter, asked.principal_filter, asked.host_filter)


def acl_of(asked: Any) -> Acl:
    """`BadAcl` if it can be none."""
    numbers = (asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type)
    return Acl.of(numbers, asked.resource_name, asked.principal, asked.host)


def told_pattern(acl: Acl) -> dict[str, Any]:
    """What an entry is for."""
    return {"resource_type": acl.resource_type, "resource_name": acl.name, "pattern_type": acl.pattern_type}


def told_entry(acl: Acl) -> dict[str, Any]:
    """Who may or may not do what with it."""
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission,
    }
