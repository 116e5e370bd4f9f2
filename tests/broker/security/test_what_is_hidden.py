"""Whoever may see a part of what there is sees that, and learns nothing of the rest."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from kohort.broker.security.acl import Operation as Op
from kohort.broker.security.acl import ResourceType as Type
from kohort.broker.topics_file import SECURITY_TOPIC
from kohort.errors import ErrorCode
from tests.broker.data_plane import FETCH, METADATA, PRODUCE, batch, make_topic, produce_request, topic_id, values
from tests.broker.group_clients import FIND_COORDINATOR, OFFSET_COMMIT
from tests.broker.running import Running
from tests.broker.security.somebody import ROOT, authorizing, create, entry, somebody
from tests.broker.wire_client import WireClient

OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS, CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID = 9, 15, 16, 19, 20, 22
ADD_PARTITIONS_TO_TXN, DESCRIBE_LOG_DIRS, DESCRIBE_CLUSTER, DESCRIBE_TRANSACTIONS = 24, 35, 60, 65
LIST_TRANSACTIONS, DESCRIBE_TOPIC_PARTITIONS = 66, 75
MINE, SECRET = "mine", "secret"


@pytest.fixture
def broker() -> Iterator[Running]:
    """Two of everything, one of which alice may see."""
    settings = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    with authorizing(**settings) as broker, somebody(broker, ROOT) as root:
        for name in (MINE, SECRET):
            make_topic(broker, name, 2)
            root.ask(PRODUCE, 8, **produce_request(batch(f"of {name}"), topic=name))
        for kind, name in ((0, MINE), (1, MINE)):
            assert root.ask(FIND_COORDINATOR, 3, key=name, key_type=kind).error_code == ErrorCode.NONE
        for group in (MINE, SECRET):
            partitions = [{"partition_index": 0, "committed_offset": 7}]
            topics = [{"name": name, "partitions": partitions} for name in (MINE, SECRET)]
            root.ask(OFFSET_COMMIT, 7, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
        for transactional_id in (MINE, SECRET):
            begin(root, transactional_id, MINE, SECRET)
        for kind in (Type.TOPIC, Type.GROUP, Type.TRANSACTIONAL_ID):
            create(broker, entry("alice", Op.DESCRIBE, kind, MINE))
        yield broker


@pytest.fixture
def alice(broker: Running) -> Iterator[WireClient]:
    with somebody(broker, "alice") as client:
        yield client


def begin(client: WireClient, transactional_id: str, *topics: str) -> None:
    producer = client.ask(INIT_PRODUCER_ID, 2, transactional_id=transactional_id, transaction_timeout=60_000)
    client.ask(
        ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[{"name": name, "partitions": [0]} for name in topics],
    )


def id_of(broker: Running, name: str) -> UUID:
    with somebody(broker, ROOT) as root:
        return topic_id(root, name)


class TestLists:
    @pytest.mark.parametrize("version", [0, 1, 9, 12])
    def test_of_all_topics(self, alice: WireClient, version: int) -> None:
        answer = alice.ask(METADATA, version, topics=None if version else ())
        assert [topic.name for topic in answer.topics] == [MINE]

    def test_of_all_topics_page_by_page(self, alice: WireClient) -> None:
        answer = alice.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=[], response_partition_limit=2)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [(MINE, ErrorCode.NONE)]
        assert answer.next_cursor is None  # it would tell the name of what comes next

    def test_of_named_topics_page_by_page(self, alice: WireClient) -> None:
        names = ("a", MINE, "n", SECRET)
        pages, cursor = [], None
        while not pages or cursor is not None:
            answer = alice.ask(
                DESCRIBE_TOPIC_PARTITIONS,
                0,
                topics=[{"name": name} for name in names],
                response_partition_limit=1,
                cursor=cursor,
            )
            pages.append([(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics])
            found = answer.next_cursor
            cursor = found and {"topic_name": found.topic_name, "partition_index": found.partition_index}
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert pages == [
            [(MINE, ErrorCode.NONE, 1), ("a", refused, 0)],
            [(MINE, ErrorCode.NONE, 1), ("n", refused, 0), (SECRET, refused, 0)],
        ]

    def test_of_groups(self, alice: WireClient) -> None:
        answer = alice.ask(LIST_GROUPS, 4)
        assert (answer.error_code, [group.group_id for group in answer.groups]) == (ErrorCode.NONE, [MINE])

    def test_of_transactions(self, alice: WireClient) -> None:
        answer = alice.ask(LIST_TRANSACTIONS, 0)
        assert [one.transactional_id for one in answer.transaction_states] == [MINE]

    def test_of_the_topics_in_a_transaction(self, alice: WireClient) -> None:
        (told,) = alice.ask(DESCRIBE_TRANSACTIONS, 0, transactional_ids=[MINE]).transaction_states
        assert (told.error_code, [topic.topic for topic in told.topics]) == (ErrorCode.NONE, [MINE])

    @pytest.mark.parametrize("version", [2, 7])
    def test_of_a_groups_offsets(self, alice: WireClient, version: int) -> None:
        answer = alice.ask(OFFSET_FETCH, version, group_id=MINE, topics=None)
        assert [(topic.name, topic.partitions[0].committed_offset) for topic in answer.topics] == [(MINE, 7)]

    def test_of_what_is_asked_for_the_rest_is_answered(self, alice: WireClient) -> None:
        topics = [{"name": name, "partition_indexes": [0]} for name in (SECRET, MINE, "missing")]
        answer = alice.ask(OFFSET_FETCH, 7, group_id=MINE, topics=topics)
        told = {
            topic.name: [(one.committed_offset, one.error_code) for one in topic.partitions] for topic in answer.topics
        }
        refused = [(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
        assert told == {MINE: [(7, ErrorCode.NONE)], SECRET: refused, "missing": refused}

    def test_of_groups_that_are_asked_for(self, alice: WireClient) -> None:
        mine, secret, missing = alice.ask(DESCRIBE_GROUPS, 5, groups=[MINE, SECRET, "missing"]).groups
        assert (mine.error_code, mine.group_state) == (ErrorCode.NONE, "Empty")
        for refused in (secret, missing):
            assert (refused.error_code, refused.group_state) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")

    def test_the_brokers_own_log_is_in_nobodys_list_of_directories(self, broker: Running) -> None:
        with somebody(broker, ROOT) as root:
            (result,) = root.ask(DESCRIBE_LOG_DIRS, 3, topics=None).results
            assert SECURITY_TOPIC not in {topic.name for topic in result.topics}
            named = [{"topic": SECURITY_TOPIC, "partitions": [0]}]
            assert root.ask(DESCRIBE_LOG_DIRS, 3, topics=named).results[0].topics == ()


class TestIds:
    """As in Kafka an id is no secret, but a name is."""

    def test_metadata_tells_no_name(self, broker: Running, alice: WireClient) -> None:
        wanted = [{"name": None, "topic_id": one} for one in (id_of(broker, SECRET), uuid4(), id_of(broker, MINE))]
        answer = alice.ask(METADATA, 12, topics=wanted, allow_auto_topic_creation=True)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            (MINE, ErrorCode.NONE),
        ]

    def test_deleting_tells_the_name_to_whoever_may_see_it(self, broker: Running, alice: WireClient) -> None:
        ids = [id_of(broker, SECRET), uuid4(), id_of(broker, MINE)]
        answer = alice.ask(DELETE_TOPICS, 6, topics=[{"name": None, "topic_id": one} for one in ids])
        assert [(topic.name, topic.error_code) for topic in answer.responses] == [
            (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            (MINE, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ]

    def test_produce_and_fetch_and_offset_fetch(self, broker: Running, alice: WireClient) -> None:
        secret, unknown = id_of(broker, SECRET), uuid4()
        expected = [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID]
        data = [{"index": 0, "records": batch("a")}]
        produced = alice.ask(
            PRODUCE,
            13,
            acks=-1,
            timeout=1_000,
            topic_data=[{"topic_id": i, "partition_data": data} for i in (secret, unknown)],
        )
        assert [topic.partition_responses[0].error_code for topic in produced.responses] == expected
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]
        fetched = alice.ask(
            FETCH,
            13,
            replica_id=-1,
            max_bytes=1_000,
            session_epoch=-1,
            topics=[{"topic_id": i, "partitions": partitions} for i in (secret, unknown)],
        )
        assert [topic.partitions[0].error_code for topic in fetched.responses] == expected
        wanted = [{"topic_id": i, "partition_indexes": [0]} for i in (secret, unknown)]
        found = alice.ask(OFFSET_FETCH, 10, groups=[{"group_id": MINE, "topics": wanted}])
        assert [topic.partitions[0].error_code for topic in found.groups[0].topics] == expected


class TestOperations:
    """What KIP-430 tells is what is so."""

    def bits(self, *operations: Op) -> int:
        return sum(1 << operation for operation in operations)

    def test_of_topics(self, broker: Running, alice: WireClient) -> None:
        create(broker, entry("alice", Op.WRITE, Type.TOPIC, MINE), entry("alice", Op.ALTER_CONFIGS, Type.TOPIC, MINE))
        allowed = self.bits(Op.WRITE, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
        answer = alice.ask(
            METADATA,
            9,
            topics=[{"name": MINE}, {"name": SECRET}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        told = {topic.name: topic.topic_authorized_operations for topic in answer.topics}
        assert told == {MINE: allowed, SECRET: -(1 << 31)}
        (topic,) = alice.ask(DESCRIBE_TOPIC_PARTITIONS, 0, topics=[{"name": MINE}]).topics
        assert topic.topic_authorized_operations == allowed

    def test_of_groups(self, broker: Running, alice: WireClient) -> None:
        create(broker, entry("alice", Op.DELETE, Type.GROUP, MINE))
        groups = alice.ask(DESCRIBE_GROUPS, 5, groups=[MINE, SECRET], include_authorized_operations=True).groups
        assert [group.authorized_operations for group in groups] == [self.bits(Op.DELETE, Op.DESCRIBE), -(1 << 31)]

    def cluster(self, client: WireClient) -> list[int]:
        asked = {"include_cluster_authorized_operations": True}
        return [
            client.ask(METADATA, 9, topics=[], **asked).cluster_authorized_operations,
            client.ask(DESCRIBE_CLUSTER, 0, **asked).cluster_authorized_operations,
        ]

    def test_of_the_cluster(self, broker: Running, alice: WireClient) -> None:
        assert self.cluster(alice) == [0, 0]
        create(broker, entry("alice", Op.ALTER, Type.CLUSTER))
        assert self.cluster(alice) == [self.bits(Op.ALTER, Op.DESCRIBE)] * 2

    def test_of_who_may_do_everything(self, broker: Running) -> None:
        with somebody(broker, ROOT) as root:
            of_cluster = (Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS)
            assert self.cluster(root) == [self.bits(*of_cluster, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE)] * 2


class TestNewTopics:
    def make(self, client: WireClient, name: str) -> Any:
        wanted = {"name": name, "num_partitions": 3, "replication_factor": 1}
        return client.ask(CREATE_TOPICS, 5, topics=[wanted]).topics[0]

    def test_settings_are_told_to_whoever_may_see_them(self, broker: Running, alice: WireClient) -> None:
        create(broker, entry("alice", Op.CREATE, Type.TOPIC, "new", prefixed=True))
        made = self.make(alice, "new-1")
        assert (made.error_code, made.topic_config_error_code) == (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert (made.num_partitions, made.replication_factor, made.configs) == (-1, -1, ())
        create(broker, entry("alice", Op.DESCRIBE_CONFIGS, Type.TOPIC, "new", prefixed=True))
        made = self.make(alice, "new-2")
        assert (made.error_code, made.topic_config_error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert (made.num_partitions, made.replication_factor) == (3, 1)
        assert len(made.configs) > 10

    def test_asking_for_a_topic_makes_it_only_for_whoever_may_make_it(self, broker: Running, alice: WireClient) -> None:
        def ask(*names: str) -> list[ErrorCode]:
            answer = alice.ask(METADATA, 9, topics=[{"name": name} for name in names], allow_auto_topic_creation=True)
            return [topic.error_code for topic in answer.topics]

        create(broker, entry("alice", Op.DESCRIBE, Type.TOPIC, "*"))
        refused, fine = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE
        assert ask("new", "other", MINE) == [refused, refused, fine]
        create(broker, entry("alice", Op.CREATE, Type.TOPIC, "new"))
        assert ask("new", "other", MINE) == [fine, refused, fine]
        create(broker, entry("alice", Op.CREATE, Type.CLUSTER))
        assert ask("new", "other", MINE) == [fine, fine, fine]


def test_who_may_not_find_a_coordinator_does_not_have_it_made() -> None:
    with authorizing() as broker, somebody(broker, "alice") as alice:
        refused = alice.ask(FIND_COORDINATOR, 3, key=MINE, key_type=0)
        assert (refused.error_code, refused.node_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)
        assert broker.on_loop(lambda: list(broker.broker.topics)) == []
        create(broker, entry("alice", Op.READ, Type.GROUP, MINE))
        found = alice.ask(FIND_COORDINATOR, 4, coordinator_keys=[SECRET, MINE], key_type=0).coordinators
        assert [(one.key, one.error_code, one.node_id) for one in found] == [
            (SECRET, ErrorCode.GROUP_AUTHORIZATION_FAILED, -1),
            (MINE, ErrorCode.NONE, 0),
        ]


def test_a_transaction_is_joined_only_by_what_may_be_written_to(broker: Running, alice: WireClient) -> None:
    """From version 12 on Produce adds partitions to the transaction itself (KIP-890)."""
    create(broker, entry("alice", Op.WRITE, Type.TOPIC, MINE), entry("alice", Op.WRITE, Type.TRANSACTIONAL_ID, "new"))
    producer = alice.ask(INIT_PRODUCER_ID, 2, transactional_id="new", transaction_timeout=60_000)
    records = batch("b", producer=producer.producer_id, epoch=producer.producer_epoch, sequence=0, transactional=True)
    request = produce_request(records, topic=SECRET, transactional_id="new")
    request["topic_data"] += produce_request(records, topic=MINE)["topic_data"]
    answer = alice.ask(PRODUCE, 12, **request)
    assert [(topic.name, topic.partition_responses[0].error_code) for topic in answer.responses] == [
        (SECRET, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (MINE, ErrorCode.NONE),
    ]
    with somebody(broker, ROOT) as root:
        (told,) = root.ask(DESCRIBE_TRANSACTIONS, 0, transactional_ids=["new"]).transaction_states
        assert [topic.topic for topic in told.topics] == [MINE]


def test_nobody_adds_the_coordinators_own_topics_to_a_transaction(broker: Running) -> None:
    """As in Kafka, whoever it is: AddOffsetsToTxn is the way to the offsets topic."""
    with somebody(broker, ROOT) as root:
        producer = root.ask(INIT_PRODUCER_ID, 2, transactional_id="new", transaction_timeout=60_000)
        answer = root.ask(
            ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id="new",
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in ("__consumer_offsets", MINE)],
        )
        assert [
            topic.results_by_partition[0].partition_error_code for topic in answer.results_by_topic_v3_and_below
        ] == [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.OPERATION_NOT_ATTEMPTED,
        ]


def test_of_a_request_for_several_topics_each_is_answered_for_itself(broker: Running, alice: WireClient) -> None:
    create(broker, entry("alice", Op.WRITE, Type.TOPIC, MINE))
    request = produce_request(batch("b"), topic=MINE)
    request["topic_data"] += produce_request(batch("b"), topic=SECRET)["topic_data"]
    request["topic_data"] += produce_request(batch("b"), topic="missing")["topic_data"]
    answer = alice.ask(PRODUCE, 8, **request)
    told = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert told == {MINE: ErrorCode.NONE, SECRET: refused, "missing": refused}
    log = broker.broker.topics.log(SECRET, 0)
    assert log is not None
    assert broker.on_loop(lambda: values(log.read(0, 1 << 20).records)) == ["of secret"]
