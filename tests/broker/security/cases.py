"""A request for every API that needs permission: what it needs, and what is said to who lacks one of those."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

from kohort.broker.security.permission import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CREATE_ON_CLUSTER,
    CREATE_TOPIC,
    DELETE_GROUP,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Permission,
)
from kohort.errors import ErrorCode
from tests.broker.data_plane import batch, fetch_request, produce_request
from tests.broker.group_clients import join_request

TOPIC, BROKER = 2, 4
GROUP, TRANSACTION = 0, 1


class Names(NamedTuple):
    """What is asked for. All names are of one length, so that answers differ in nothing else."""

    topic: str
    group: str
    transactional_id: str


THERE = Names("orders-1", "reader-1", "sender-1")
MISSING = Names("orders-2", "reader-2", "sender-2")

Request = Callable[[Names], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One request of one version."""

    name: str
    api_key: int
    version: int
    request: Request
    needs: tuple[Permission, ...]
    refusals: Mapping[Permission, ErrorCode | None] = field(default_factory=dict)
    """What is told to who lacks one, if it is not what belongs to the permission; None: no error, only less."""

    def refusal(self, missing: Permission) -> ErrorCode | None:
        return self.refusals.get(missing, missing.refusal)

    def asks_for(self, permission: Permission, names: Names) -> bool:
        """A topic that is there need not be made; of a group that is not there no topic's offsets are deleted."""
        if self.name.startswith("Metadata, "):
            return names is MISSING or permission not in (CREATE_TOPIC, CREATE_ON_CLUSTER)
        return self.name != "OffsetDelete" or names is THERE or permission is DELETE_GROUP


def topics(named: Names, **partition: Any) -> list[dict[str, Any]]:
    return [{"name": named.topic, "partitions": [{"partition_index": 0, **partition}]}]


def committed(named: Names) -> list[dict[str, Any]]:
    return topics(named, committed_offset=5, committed_metadata="")


def fetched(named: Names) -> list[dict[str, Any]]:
    return [{"name": named.topic, "partition_indexes": [0]}]


def epochs(named: Names) -> list[dict[str, Any]]:
    return [{"topic": named.topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]


def of_member(named: Names, **more: Any) -> dict[str, Any]:
    return {"group_id": named.group, "generation_id": 1, "member_id": "nobody", **more}


def of_producer(named: Names, **more: Any) -> dict[str, Any]:
    return {"transactional_id": named.transactional_id, "producer_id": 5, "producer_epoch": 0, **more}


def configs(named: Names, resource_type: int, **more: Any) -> dict[str, Any]:
    name = named.topic if resource_type == TOPIC else "0"
    return {"resources": [{"resource_type": resource_type, "resource_name": name, **more}]}


RETENTION = [{"name": "retention.ms", "value": "1000"}]
CLEANER = [{"name": "log.cleaner.backoff.ms", "value": "1000"}]
NEW_ACL = {
    "resource_type": TOPIC,
    "resource_name": "orders",
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ANY_ACL = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}

CASES = [
    Case("Produce", 0, 8, lambda n: produce_request(batch("a"), topic=n.topic), (WRITE_TOPIC,)),
    Case(
        "Produce in a transaction",
        0,
        8,
        lambda n: produce_request(
            batch("a", producer=5, epoch=0, sequence=0, transactional=True),
            topic=n.topic,
            transactional_id=n.transactional_id,
        ),
        (WRITE_TOPIC, WRITE_TRANSACTIONAL_ID),
    ),
    Case("Fetch", 1, 11, lambda n: fetch_request(0, topic=n.topic), (READ_TOPIC,)),
    Case(
        "Fetch of a replica",
        1,
        11,
        lambda n: fetch_request(0, topic=n.topic) | {"replica_id": 1},
        (CLUSTER_ACTION,),
        {CLUSTER_ACTION: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    ),
    Case("ListOffsets", 2, 5, lambda n: {"replica_id": -1, "topics": topics(n, timestamp=-1)}, (DESCRIBE_TOPIC,)),
    Case(
        "ListOffsets of a replica",
        2,
        5,
        lambda n: {"replica_id": 1, "topics": topics(n, timestamp=-1)},
        (CLUSTER_ACTION,),
        {CLUSTER_ACTION: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    ),
    Case(
        "Metadata",
        3,
        9,
        lambda n: {"topics": [{"name": n.topic}], "allow_auto_topic_creation": False},
        (DESCRIBE_TOPIC,),
    ),
    Case(
        "Metadata, which may make the topic",
        3,
        9,
        lambda n: {"topics": [{"name": n.topic}], "allow_auto_topic_creation": True},
        (DESCRIBE_TOPIC, CREATE_TOPIC),
    ),
    Case(
        "Metadata, by one who may make any topic",
        3,
        9,
        lambda n: {"topics": [{"name": n.topic}], "allow_auto_topic_creation": True},
        (DESCRIBE_TOPIC, CREATE_ON_CLUSTER),
        {CREATE_ON_CLUSTER: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    ),
    Case("Metadata of all topics", 3, 9, lambda _: {"topics": None}, (DESCRIBE_TOPIC,), {DESCRIBE_TOPIC: None}),
    Case(
        "Metadata with operations",
        3,
        9,
        lambda n: {
            "topics": [{"name": n.topic}],
            "allow_auto_topic_creation": False,
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        },
        (DESCRIBE_TOPIC, DESCRIBE_CLUSTER),
        {DESCRIBE_CLUSTER: None},
    ),
    Case(
        "OffsetCommit",
        8,
        7,
        lambda n: {"group_id": n.group, "generation_id_or_member_epoch": -1, "topics": committed(n)},
        (READ_GROUP, READ_TOPIC),
    ),
    Case("OffsetFetch", 9, 7, lambda n: {"group_id": n.group, "topics": fetched(n)}, (DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    Case(
        "OffsetFetch, version 1",
        9,
        1,
        lambda n: {"group_id": n.group, "topics": fetched(n)},
        (DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
    Case(
        "OffsetFetch of all partitions",
        9,
        7,
        lambda n: {"group_id": n.group, "topics": None},
        (DESCRIBE_GROUP, DESCRIBE_TOPIC),
        {DESCRIBE_TOPIC: None},
    ),
    Case(
        "OffsetFetch of several groups",
        9,
        8,
        lambda n: {"groups": [{"group_id": n.group, "topics": fetched(n)}]},
        (DESCRIBE_GROUP, DESCRIBE_TOPIC),
    ),
    Case("FindCoordinator", 10, 3, lambda n: {"key": n.group, "key_type": GROUP}, (DESCRIBE_GROUP,)),
    Case(
        "FindCoordinator of several",
        10,
        4,
        lambda n: {"coordinator_keys": [n.group], "key_type": GROUP},
        (DESCRIBE_GROUP,),
    ),
    Case(
        "FindCoordinator of a transaction",
        10,
        3,
        lambda n: {"key": n.transactional_id, "key_type": TRANSACTION},
        (DESCRIBE_TRANSACTIONAL_ID,),
    ),
    Case("JoinGroup", 11, 5, lambda n: join_request(n.group, n.topic, member_id="nobody"), (READ_GROUP,)),
    Case("Heartbeat", 12, 3, of_member, (READ_GROUP,)),
    Case("LeaveGroup", 13, 3, lambda n: {"group_id": n.group, "members": [{"member_id": "nobody"}]}, (READ_GROUP,)),
    Case("SyncGroup", 14, 3, of_member, (READ_GROUP,)),
    Case(
        "DescribeGroups",
        15,
        5,
        lambda n: {"groups": [n.group], "include_authorized_operations": True},
        (DESCRIBE_GROUP,),
    ),
    Case("ListGroups", 16, 4, lambda _: {}, (DESCRIBE_GROUP,), {DESCRIBE_GROUP: None}),
    Case("ListGroups of the whole cluster", 16, 4, lambda _: {}, (DESCRIBE_CLUSTER,), {DESCRIBE_CLUSTER: None}),
    Case(
        "CreateTopics",
        19,
        5,
        lambda n: {"topics": [{"name": n.topic, "num_partitions": 1, "replication_factor": 1}]},
        (CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS),
        {DESCRIBE_TOPIC_CONFIGS: None},
    ),
    Case(
        "CreateTopics, by one who may make any",
        19,
        5,
        lambda n: {"topics": [{"name": n.topic, "num_partitions": 1, "replication_factor": 1}]},
        (CREATE_ON_CLUSTER,),
        {CREATE_ON_CLUSTER: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    ),
    Case("DeleteTopics", 20, 4, lambda n: {"topic_names": [n.topic]}, (DELETE_TOPIC,)),
    Case("DeleteTopics by name, version 6", 20, 6, lambda n: {"topics": [{"name": n.topic}]}, (DELETE_TOPIC,)),
    Case("DeleteRecords", 21, 1, lambda n: {"topics": topics(n, offset=0)}, (DELETE_TOPIC,)),
    Case(
        "InitProducerId of a transaction",
        22,
        2,
        lambda n: {"transactional_id": n.transactional_id, "transaction_timeout": 60_000},
        (WRITE_TRANSACTIONAL_ID,),
    ),
    Case("InitProducerId", 22, 2, lambda _: {"transaction_timeout": 60_000}, (IDEMPOTENT_WRITE,)),
    Case(
        "InitProducerId, by one who may write somewhere",
        22,
        2,
        lambda _: {"transaction_timeout": 60_000},
        (WRITE_TOPIC,),
        {WRITE_TOPIC: ErrorCode.CLUSTER_AUTHORIZATION_FAILED},
    ),
    Case("OffsetForLeaderEpoch", 23, 3, lambda n: {"replica_id": -1, "topics": epochs(n)}, (DESCRIBE_TOPIC,)),
    Case("OffsetForLeaderEpoch, version 2", 23, 2, lambda n: {"topics": epochs(n)}, (DESCRIBE_TOPIC,)),
    Case(
        "OffsetForLeaderEpoch of a replica",
        23,
        3,
        lambda n: {"replica_id": 1, "topics": epochs(n)},
        (CLUSTER_ACTION,),
        {CLUSTER_ACTION: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    ),
    Case(
        "AddPartitionsToTxn",
        24,
        3,
        lambda n: {
            "v3_and_below_transactional_id": n.transactional_id,
            "v3_and_below_producer_id": 5,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": [{"name": n.topic, "partitions": [0]}],
        },
        (WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
    ),
    Case("AddOffsetsToTxn", 25, 3, lambda n: of_producer(n, group_id=n.group), (WRITE_TRANSACTIONAL_ID, READ_GROUP)),
    Case("EndTxn", 26, 3, lambda n: of_producer(n, committed=True), (WRITE_TRANSACTIONAL_ID,)),
    Case(
        "TxnOffsetCommit",
        28,
        3,
        lambda n: of_producer(n, group_id=n.group, topics=committed(n)),
        (WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC),
    ),
    Case("DescribeAcls", 29, 2, lambda _: ANY_ACL, (DESCRIBE_CLUSTER,)),
    Case("CreateAcls", 30, 2, lambda _: {"creations": [NEW_ACL]}, (ALTER_CLUSTER,)),
    Case("DeleteAcls", 31, 2, lambda _: {"filters": [ANY_ACL]}, (ALTER_CLUSTER,)),
    Case("DescribeConfigs", 32, 2, lambda n: configs(n, TOPIC), (DESCRIBE_TOPIC_CONFIGS,)),
    Case("DescribeConfigs of a broker", 32, 2, lambda n: configs(n, BROKER), (DESCRIBE_CLUSTER_CONFIGS,)),
    Case("AlterConfigs", 33, 1, lambda n: configs(n, TOPIC, configs=RETENTION), (ALTER_TOPIC_CONFIGS,)),
    Case("AlterConfigs of a broker", 33, 1, lambda n: configs(n, BROKER, configs=CLEANER), (ALTER_CLUSTER_CONFIGS,)),
    Case("DescribeLogDirs", 35, 3, lambda _: {"topics": None}, (DESCRIBE_CLUSTER,)),
    Case("CreatePartitions", 37, 2, lambda n: {"topics": [{"name": n.topic, "count": 3}]}, (ALTER_TOPIC,)),
    Case("DeleteGroups", 42, 1, lambda n: {"groups_names": [n.group]}, (DELETE_GROUP,)),
    Case("IncrementalAlterConfigs", 44, 1, lambda n: configs(n, TOPIC, configs=RETENTION), (ALTER_TOPIC_CONFIGS,)),
    Case(
        "IncrementalAlterConfigs of a broker",
        44,
        1,
        lambda n: configs(n, BROKER, configs=CLEANER),
        (ALTER_CLUSTER_CONFIGS,),
    ),
    Case(
        "OffsetDelete",
        47,
        0,
        lambda n: {"group_id": n.group, "topics": topics(n)},
        (DELETE_GROUP, READ_TOPIC),
    ),
    Case("DescribeClientQuotas", 48, 1, lambda _: {"components": [], "strict": False}, (DESCRIBE_CLUSTER_CONFIGS,)),
    Case(
        "AlterClientQuotas",
        49,
        1,
        lambda _: {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "somebody"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
                }
            ],
            "validate_only": False,
        },
        (ALTER_CLUSTER_CONFIGS,),
    ),
    Case("DescribeUserScramCredentials", 50, 0, lambda _: {"users": []}, (DESCRIBE_CLUSTER,)),
    Case(
        "AlterUserScramCredentials",
        51,
        0,
        lambda _: {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
        (ALTER_CLUSTER,),
    ),
    Case(
        "DescribeCluster",
        60,
        0,
        lambda _: {"include_cluster_authorized_operations": True},
        (DESCRIBE_CLUSTER,),
        {DESCRIBE_CLUSTER: None},
    ),
    Case("DescribeProducers", 61, 0, lambda n: {"topics": fetched(n)}, (READ_TOPIC,)),
    Case(
        "DescribeTransactions",
        65,
        0,
        lambda n: {"transactional_ids": [n.transactional_id]},
        (DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC),
        {DESCRIBE_TOPIC: None},
    ),
    Case("ListTransactions", 66, 0, lambda _: {}, (DESCRIBE_TRANSACTIONAL_ID,), {DESCRIBE_TRANSACTIONAL_ID: None}),
    Case(
        "DescribeTopicPartitions",
        75,
        0,
        lambda n: {"topics": [{"name": n.topic}], "response_partition_limit": 100},
        (DESCRIBE_TOPIC,),
    ),
    Case(
        "DescribeTopicPartitions of all",
        75,
        0,
        lambda _: {"topics": [], "response_partition_limit": 100},
        (DESCRIBE_TOPIC,),
        {DESCRIBE_TOPIC: None},
    ),
]

REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def refusals_in(answer: Any) -> set[ErrorCode]:
    """The errors of this kind that an answer tells, wherever it does. Those of settings that are kept back do not
    count."""
    found: set[ErrorCode] = set()
    if isinstance(answer, tuple):
        for one in answer:
            found |= refusals_in(one)
    elif is_dataclass(answer):
        for one in fields(answer):
            value = getattr(answer, one.name)
            if one.metadata.get("kafka_type") != "error_code":
                found |= refusals_in(value)
            elif one.name != "topic_config_error_code" and value in REFUSALS:
                found.add(ErrorCode(value))
    return found
