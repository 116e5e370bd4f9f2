"""The words of `kafka-acls`: which resources, who, from where, what; and the entries that they mean."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from kohort.broker.security.acl import (
    ANYTHING,
    CLUSTER_NAME,
    Acl,
    AclFilter,
    BadAcl,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from kohort.cli.group_options import text

F = TypeVar("F", bound=Callable[..., Any])

_OPERATIONS = {operation.name.replace("_", "").lower(): operation for operation in Operation if operation.name != "ANY"}
_PATTERNS = {pattern.name.lower(): pattern for pattern in PatternType}
_OF_TYPE = {
    ResourceType.TOPIC: "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS ALL",
    ResourceType.GROUP: "READ DESCRIBE DELETE ALL",
    ResourceType.CLUSTER: "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE ALL",
    ResourceType.TRANSACTIONAL_ID: "DESCRIBE WRITE ALL",
    ResourceType.DELEGATION_TOKEN: "DESCRIBE ALL",
    ResourceType.USER: "CREATE_TOKENS DESCRIBE_TOKENS ALL",
}
"""What can be done with each; other entries would mean nothing."""

Resource = tuple[ResourceType, str]


class Words(NamedTuple):
    """What was said on the command line."""

    resources: tuple[Resource, ...]
    pattern_type: PatternType
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()
    is_producer: bool = False
    is_consumer: bool = False
    is_idempotent: bool = False


def operation(value: str) -> Operation:
    """Read, DescribeConfigs, describe_configs, ALL."""
    found = _OPERATIONS.get(value.strip().replace("_", "").replace("-", "").lower())
    if found is None:
        known = ", ".join(one.name for one in _OPERATIONS.values())
        raise click.BadParameter(f"{value!r} is no operation; there are {known}")
    return found


def principal(value: str) -> str:
    kind, _, name = text(value).partition(":")
    if not kind or not name:
        raise click.BadParameter(f"{value!r} is not TYPE:NAME, as in User:alice")
    return value


def resource_options(*patterns: PatternType) -> Callable[[F], F]:
    """Which resources; `patterns` are the ways to name them that make sense."""
    several = "may be given several times"
    options = (
        click.option("--topic", "topics", multiple=True, type=text, help=f"A topic; {several}. * is all of them."),
        click.option("--group", "groups", multiple=True, type=text, help=f"A group; {several}."),
        click.option("--transactional-id", "transactional_ids", multiple=True, type=text, help="A transactional id."),
        click.option("--cluster", is_flag=True, help="The cluster."),
        click.option("--delegation-token", "tokens", multiple=True, type=text, help="A delegation token."),
        click.option("--user-principal", "users", multiple=True, type=principal, help="A user, as a resource."),
        click.option(
            "--resource-pattern-type",
            "pattern",
            type=click.Choice([pattern.name.lower() for pattern in patterns], case_sensitive=False),
            default="literal",
            show_default=True,
            help="How names stand for resources.",
        ),
    )
    return _all_of(options)


def entry_options(command: F) -> F:
    """Who may or may not do what, from where."""
    options = (
        click.option(
            "--allow-principal", "allowed", multiple=True, type=principal, metavar="TYPE:NAME", help="Who may."
        ),
        click.option(
            "--deny-principal", "denied", multiple=True, type=principal, metavar="TYPE:NAME", help="Who may not."
        ),
        click.option("--allow-host", "allowed_hosts", multiple=True, help="From this address; from any if not given."),
        click.option("--deny-host", "denied_hosts", multiple=True, help="From this address; from any if not given."),
        click.option("--operation", "operations", multiple=True, type=operation, help="What; everything by default."),
        click.option("--producer", is_flag=True, help="All that a producer needs of --topic and --transactional-id."),
        click.option("--consumer", is_flag=True, help="All that a consumer needs of --topic and --group."),
        click.option("--idempotent", is_flag=True, help="With --producer: an idempotent one, of a Kafka before 3.0."),
    )
    return _all_of(options)(command)


def _all_of(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def words(
    *,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    transactional_ids: tuple[str, ...],
    cluster: bool,
    tokens: tuple[str, ...],
    users: tuple[str, ...],
    pattern: str,
    producer: bool = False,
    consumer: bool = False,
    idempotent: bool = False,
    **others: Any,
) -> Words:
    """What the options say together; a usage error where that makes no sense."""
    resources = (
        *((ResourceType.TOPIC, name) for name in topics),
        *((ResourceType.GROUP, name) for name in groups),
        *((ResourceType.TRANSACTIONAL_ID, name) for name in transactional_ids),
        *((ResourceType.CLUSTER, CLUSTER_NAME) for _ in range(cluster)),
        *((ResourceType.DELEGATION_TOKEN, name) for name in tokens),
        *((ResourceType.USER, name) for name in users),
    )
    said = Words(
        resources,
        _PATTERNS[pattern.lower()],
        is_producer=producer,
        is_consumer=consumer,
        is_idempotent=idempotent,
        **others,
    )
    _check(said)
    return said


def _check(said: Words) -> None:
    kinds = {kind for kind, _ in said.resources}
    if said.is_producer or said.is_consumer:
        if said.operations or said.denied or said.denied_hosts:
            raise click.UsageError("--producer and --consumer go without --operation, --deny-principal and --deny-host")
        if ResourceType.TOPIC not in kinds:
            raise click.UsageError("--producer and --consumer need --topic")
        if said.is_consumer and ResourceType.GROUP not in kinds:
            raise click.UsageError("--consumer needs --group")
        fitting = {ResourceType.TOPIC}
        fitting |= {ResourceType.TRANSACTIONAL_ID} if said.is_producer else set()
        fitting |= {ResourceType.GROUP} if said.is_consumer else set()
        if kinds - fitting:
            raise click.UsageError("--producer goes with --topic and --transactional-id, --consumer with --group too")
    if said.is_idempotent and not said.is_producer:
        raise click.UsageError("--idempotent goes with --producer")
    if said.allowed_hosts and not said.allowed:
        raise click.UsageError("--allow-host goes with --allow-principal")
    if said.denied_hosts and not said.denied:
        raise click.UsageError("--deny-host goes with --deny-principal")
    for kind in kinds:
        for one in said.operations:
            if one.name not in _OF_TYPE[kind].split():
                known = _OF_TYPE[kind].replace(" ", ", ")
                raise click.UsageError(f"{one.name} cannot be done with a resource of type {kind.name}: {known}")


def entries(said: Words) -> list[Acl]:
    """The entries that are meant, in the order of the resources."""
    found: dict[Acl, None] = {}
    for kind, name, operations in _operations(said):
        pattern = PatternType.LITERAL if kind is ResourceType.CLUSTER else said.pattern_type
        for permission, principals, hosts in (
            (PermissionType.ALLOW, said.allowed, said.allowed_hosts),
            (PermissionType.DENY, said.denied, said.denied_hosts),
        ):
            for who in principals:
                for host in hosts or (ANYTHING,):
                    for one in operations:
                        found[_entry(Acl(kind, pattern, name, who, host, one, permission))] = None
    return list(found)


def _entry(acl: Acl) -> Acl:
    """The same, with the host as it was written: each cluster compares it in its own way."""
    numbers = (acl.resource_type, acl.pattern_type, acl.operation, acl.permission)
    try:
        Acl.of(numbers, acl.name, acl.principal, acl.host)
    except BadAcl as error:
        raise click.UsageError(str(error)) from None
    return acl


def _operations(said: Words) -> Iterator[tuple[ResourceType, str, Sequence[Operation]]]:
    """Which operations with which resources."""
    if not said.is_producer and not said.is_consumer:
        for kind, name in said.resources:
            yield kind, name, said.operations or (Operation.ALL,)
        return
    of_producers: dict[ResourceType, tuple[Operation, ...]] = {
        ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    }
    of_consumers: dict[ResourceType, tuple[Operation, ...]] = {
        ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
        ResourceType.GROUP: (Operation.READ,),
    }
    for kind, name in said.resources:
        if said.is_producer:
            yield kind, name, of_producers.get(kind, ())
        if said.is_consumer:
            yield kind, name, of_consumers.get(kind, ())
    if said.is_idempotent:
        yield ResourceType.CLUSTER, CLUSTER_NAME, (Operation.IDEMPOTENT_WRITE,)


def filters(said: Words) -> list[AclFilter]:
    """All entries of the resources that are named; of all there are, if none is."""
    anything = AclFilter(ResourceType.ANY, PatternType.ANY, None, None, None, Operation.ANY, PermissionType.ANY)
    return [
        anything._replace(resource_type=kind, name=name, pattern_type=said.pattern_type)
        for kind, name in said.resources
    ] or [anything]


def exactly(acl: Acl, pattern_type: PatternType) -> AclFilter:
    """Just this one, or those like it of all resources that its name stands for."""
    pattern = PatternType.LITERAL if acl.resource_type is ResourceType.CLUSTER else pattern_type
    return AclFilter(*acl)._replace(pattern_type=pattern)
