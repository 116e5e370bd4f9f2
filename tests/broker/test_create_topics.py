"""CreateTopics over a socket, in every version."""

from collections.abc import Iterator

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

API = 19
METADATA = 3


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"num.partitions": "3", "offsets.topic.num.partitions": "5"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def create(client: WireClient, *topics: dict, version: int = 7, validate_only: bool = False) -> list:
    answer = client.ask(API, version, topics=topics, timeout=10_000, validate_only=validate_only)
    return list(answer.topics)


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: object) -> dict:
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, **more}


def settings(**values: str | None) -> list[dict]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in values.items()]


def by_hand(*partitions: tuple[int, list[int]]) -> list[dict]:
    return [{"partition_index": index, "broker_ids": brokers} for index, brokers in partitions]


def partitions_of(client: WireClient, name: str) -> int | None:
    answer = client.ask(METADATA, 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics[0]
    return len(answer.partitions) if answer.error_code == ErrorCode.NONE else None


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_there_when_the_answer_comes(client: WireClient, version: int):
    name = f"made-by-{version}"

    (answer,) = create(client, topic(name, 2), version=version)

    assert (answer.name, answer.error_code, answer.error_message) == (name, ErrorCode.NONE, None)
    assert partitions_of(client, name) == 2
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (2, 1)
        assert {entry.name: entry.value for entry in answer.configs}["cleanup.policy"] == "delete"
    if version >= 7:
        told = client.ask(METADATA, 12, topics=[{"name": name}]).topics[0]
        assert answer.topic_id == told.topic_id


@pytest.mark.parametrize("version", range(2, 8))
def test_minus_one_asks_for_the_brokers_own_numbers(client: WireClient, version: int):
    name = f"default-{version}"

    (answer,) = create(client, topic(name, -1, -1), version=version)

    assert answer.error_code == ErrorCode.NONE
    assert partitions_of(client, name) == 3


def test_settings_are_kept_and_told(client: WireClient):
    wanted = settings(retention_ms="5", cleanup_policy="compact, delete", compression_type="lz4")

    (answer,) = create(client, topic("with-settings", configs=wanted))

    told = {entry.name: (entry.value, entry.config_source) for entry in answer.configs}
    assert told["retention.ms"] == ("5", 1)
    assert told["cleanup.policy"] == ("compact,delete", 1)
    assert told["compression.type"] == ("lz4", 1)
    assert told["segment.bytes"] == ("1073741824", 5)


def test_partitions_can_be_laid_out_by_hand(client: WireClient):
    (answer,) = create(client, topic("by-hand", -1, -1, assignments=by_hand((1, [0]), (0, [0]))))

    assert answer.error_code == ErrorCode.NONE
    assert (answer.num_partitions, answer.replication_factor) == (2, 1)
    assert partitions_of(client, "by-hand") == 2


@pytest.mark.parametrize("version", range(2, 8))
def test_validate_only_makes_nothing(client: WireClient, version: int):
    name = f"not-made-by-{version}"

    good, bad = create(client, topic(name), topic("bad", 0), version=version, validate_only=True)

    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
    assert partitions_of(client, name) is None


REFUSED = {
    "no name": (topic(""), ErrorCode.INVALID_TOPIC),
    "one dot": (topic("."), ErrorCode.INVALID_TOPIC),
    "two dots": (topic(".."), ErrorCode.INVALID_TOPIC),
    "a slash": (topic("../x"), ErrorCode.INVALID_TOPIC),
    "too long a name": (topic("x" * 250), ErrorCode.INVALID_TOPIC),
    "the longest string": (topic("x" * 32_767), ErrorCode.INVALID_TOPIC),
    "a name that is taken": (topic("taken"), ErrorCode.TOPIC_ALREADY_EXISTS),
    "a name that is taken, and more that is wrong": (topic("taken", 0, 9), ErrorCode.TOPIC_ALREADY_EXISTS),
    "a dot for an underscore": (topic("a_b"), ErrorCode.INVALID_TOPIC),
    "no partitions": (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
    "less than none": (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
    "too many at once": (topic("t", 2_147_483_647), ErrorCode.POLICY_VIOLATION),
    "no replicas": (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    "less than no replicas": (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
    "more replicas than brokers": (topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
    "an unknown setting": (topic("t", configs=settings(no_such="1")), ErrorCode.INVALID_CONFIG),
    "a wrong value": (topic("t", configs=settings(segment_bytes="-1")), ErrorCode.INVALID_CONFIG),
    "no value": (topic("t", configs=settings(segment_bytes=None)), ErrorCode.INVALID_REQUEST),
    "numbers and assignments": (topic("t", 1, -1, assignments=by_hand((0, [0]))), ErrorCode.INVALID_REQUEST),
    "a broker that is not there": (
        topic("t", -1, -1, assignments=by_hand((0, [7]))),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "a broker twice": (topic("t", -1, -1, assignments=by_hand((0, [0, 0]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "no broker": (topic("t", -1, -1, assignments=by_hand((0, []))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "a gap": (topic("t", -1, -1, assignments=by_hand((0, [0]), (2, [0]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "a partition twice": (
        topic("t", -1, -1, assignments=by_hand((0, [0]), (0, [0]))),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ),
    "a negative partition": (topic("t", -1, -1, assignments=by_hand((-1, [0]))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "other partitions than transactions live in": (topic("__transaction_state", 4), ErrorCode.INVALID_PARTITIONS),
    "other partitions than groups live in": (topic("__consumer_offsets", 4), ErrorCode.INVALID_PARTITIONS),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kafka_refuses_is_refused_and_nothing_is_made(client: WireClient, case: str):
    wanted, error = REFUSED[case]
    client.ask(METADATA, 12, topics=[{"name": "taken"}, {"name": "a.b"}], allow_auto_topic_creation=True)

    refused, made = create(client, wanted, topic("beside"))
    client.ask(20, 6, topics=[{"name": "beside"}])

    assert refused.error_code == error
    assert refused.error_message
    assert (refused.num_partitions, refused.replication_factor, refused.configs) == (-1, -1, ())
    assert made.error_code == ErrorCode.NONE
    assert partitions_of(client, "t") is None


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_that_is_named_twice_is_not_made(client: WireClient, version: int):
    twice, once = create(client, topic("twice"), topic(f"once-{version}"), topic("twice", 2), version=version)

    assert (twice.name, twice.error_code) == ("twice", ErrorCode.INVALID_REQUEST)
    assert once.error_code == ErrorCode.NONE
    assert partitions_of(client, "twice") is None


def test_topics_of_one_request_can_collide_with_each_other(client: WireClient):
    first, second = create(client, topic("c.d"), topic("c_d"))

    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC)


def test_the_limit_holds_for_all_topics_of_a_request(client: WireClient):
    first, second = create(client, topic("half", 6_000), topic("other-half", 6_000), validate_only=True)

    assert (first.error_code, second.error_code) == (ErrorCode.NONE, ErrorCode.POLICY_VIOLATION)


def test_groups_live_in_an_offsets_topic_that_was_made_by_hand():
    with running(settings={"offsets.topic.num.partitions": "5"}) as broker, broker.client() as client:
        (answer,) = create(client, topic("__consumer_offsets", 5))
        joined = client.ask(
            11,
            5,
            group_id="g",
            session_timeout=10_000,
            rebalance_timeout=10_000,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )

    assert answer.error_code == ErrorCode.NONE
    assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
