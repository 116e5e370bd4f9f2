"""Groups as their coordinators tell of them: which there are, their states, their members; and groups deleted."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kohort.admin.cluster import Cluster, Node, all_of
from kohort.admin.messages import CONSUMER_GROUP_DESCRIBE, DELETE_GROUPS, DESCRIBE_GROUPS, LIST_GROUPS, NotSpoken
from kohort.admin.refusals import in_words, named
from kohort.errors import ErrorCode
from kohort.log.cluster import TopicPartition
from kohort.records.rows import assigned_partitions, subscribed_topics

CLASSIC, CONSUMER = "Classic", "Consumer"
TYPES = (CLASSIC, CONSUMER)
DEAD = "Dead"
STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    DEAD,
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
AT_REST = ("Empty", DEAD)
"""States in which a group has no members; Dead is one that does not exist."""
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")

_OF_CONSUMERS = ("consumer", "")
"""Protocol types; groups that only ever had offsets committed have none."""


class Listed(NamedTuple):
    """A group in a list."""

    group: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member; what it wants and what it has are None where only clients can read them."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    subscription: tuple[str, ...] | None
    assignment: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class Described:
    """A group with its members; one that does not exist is `Dead`."""

    group: str
    type: str
    state: str
    protocol_type: str
    protocol: str
    coordinator: Node
    members: tuple[Member, ...]

    @property
    def exists(self) -> bool:
        return self.state != DEAD

    @property
    def is_at_rest(self) -> bool:
        return self.state in AT_REST


def list_groups(cluster: Cluster) -> list[Listed]:
    """Every group of consumers, as Kafka's own tool takes it: groups of Connect and the like are not among them."""
    return cluster.run(_list_groups(cluster))


def describe_groups(cluster: Cluster, names: Iterable[str]) -> dict[str, Described]:
    """Groups of any kind with their members."""
    told = cluster.run(all_of(partial(_describe, cluster, name) for name in dict.fromkeys(names)))
    return {described.group: described for described in told}


def delete_groups(cluster: Cluster, names: Iterable[str]) -> dict[str, str | None]:
    """Delete groups; each with the reason why it is still there, or None."""
    return dict(cluster.run(all_of(partial(_delete, cluster, name) for name in dict.fromkeys(names))))


async def _list_groups(cluster: Cluster) -> list[Listed]:
    """Each broker tells of those that it coordinates."""
    found: dict[str, Listed] = {}
    for node, answer in await all_of(partial(_listed_by, cluster, node) for node in cluster.nodes()):
        for group in answer.groups:
            if group.protocol_type not in _OF_CONSUMERS:
                continue
            cluster.note_coordinator(group.group_id, node.id)
            type_ = getattr(group, "group_type", CLASSIC).capitalize()
            state = getattr(group, "group_state", "")
            found[group.group_id] = Listed(group.group_id, group.protocol_type, state, type_)
    if any(not listed.state for listed in found.values()):
        # Before version 4 a list has no states.
        for described in await all_of(partial(_describe, cluster, name) for name in found):
            found[described.group] = found[described.group]._replace(state=described.state)
    return sorted(found.values())


async def _listed_by(cluster: Cluster, node: Node) -> tuple[Node, Any]:
    from aiokafka.errors import NodeNotReadyError

    deadline = cluster.deadline()
    while True:
        try:
            answer = await cluster.ask(node.id, LIST_GROUPS, states_filter=(), types_filter=())
        except NodeNotReadyError:
            where = f"broker {node.id} ({node.host}:{node.port})"
            raise cluster.failure(f"{where} does not answer, and nobody else knows its groups") from None
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or cluster.now() > deadline:
            cluster.refuse(answer.error_code, f"the groups of broker {node.id}")
            return node, answer
        await cluster.pause()


async def _describe(cluster: Cluster, name: str) -> Described:
    answer = await cluster.ask_coordinator(
        name,
        DESCRIBE_GROUPS,
        lambda told: [group.error_code for group in told.groups],
        groups=(name,),
        include_authorized_operations=False,
    )
    (group,) = answer.groups
    cluster.refuse(group.error_code, f"group {named(name)}")
    if group.group_state == DEAD and (modern := await _describe_modern(cluster, name)) is not None:
        return modern
    node = await _coordinator(cluster, name)
    members = tuple(_classic_member(group.protocol_type, member) for member in group.members)
    return Described(name, CLASSIC, group.group_state, group.protocol_type, group.protocol_data, node, members)


async def _describe_modern(cluster: Cluster, name: str) -> Described | None:
    """A group of the protocol of KIP-848, if the cluster knows it and has such a group."""
    try:
        answer = await cluster.ask_coordinator(
            name,
            CONSUMER_GROUP_DESCRIBE,
            lambda told: [group.error_code for group in told.groups],
            group_ids=(name,),
            include_authorized_operations=False,
        )
    except NotSpoken:
        return None
    (group,) = answer.groups
    if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    cluster.refuse(group.error_code, f"group {named(name)}")
    members = tuple(_modern_member(member) for member in group.members)
    node = await _coordinator(cluster, name)
    return Described(name, CONSUMER, group.group_state, "consumer", group.assignor_name, node, members)


async def _coordinator(cluster: Cluster, name: str) -> Node:
    number = await cluster.coordinator(name)
    return next((node for node in cluster.nodes() if node.id == number), Node(number, "?", -1))


def _classic_member(protocol_type: str, member: Any) -> Member:
    topics = subscribed_topics(protocol_type, member.member_metadata)
    assigned = assigned_partitions(protocol_type, member.member_assignment)
    return Member(
        member.member_id,
        getattr(member, "group_instance_id", None),
        member.client_id,
        member.client_host,
        None if topics is None else tuple(topics),
        None if assigned is None else tuple(sorted(assigned)),
    )


def _modern_member(member: Any) -> Member:
    assigned = [(part.topic_name, number) for part in member.assignment.topic_partitions for number in part.partitions]
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        tuple(member.subscribed_topic_names or ()),
        tuple(sorted(assigned)),
    )


async def _delete(cluster: Cluster, name: str) -> tuple[str, str | None]:
    answer = await cluster.ask_coordinator(
        name, DELETE_GROUPS, lambda told: [result.error_code for result in told.results], groups_names=(name,)
    )
    (result,) = answer.results
    return name, in_words(result.error_code) if result.error_code else None
