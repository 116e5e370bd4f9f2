"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs over a socket, in every version."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

DESCRIBE, ALTER, INCREMENTAL = 32, 33, 44
CREATE_TOPICS, DELETE_TOPICS, FIND_COORDINATOR = 19, 20, 10
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
TOPIC_CONFIG, STATIC, DEFAULT = 1, 4, 5
SET, REMOVE, APPEND, SUBTRACT = range(4)


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    settings = {"log.retention.ms": "1000", "offsets.topic.num.partitions": "1", "num.partitions": "2"}
    with running(settings=settings) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        client.ask(DELETE_TOPICS, 5, topic_names=["orders"])
        configs = [{"name": "segment.bytes", "value": "5000"}, {"name": "cleanup.policy", "value": "compact"}]
        topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1, "configs": configs}
        client.ask(CREATE_TOPICS, 4, topics=[topic], timeout=1_000)
        yield client


def describe(client: WireClient, kind: int, name: str, *keys: str, version: int = 4, **asked: bool):
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None}
    (answer,) = client.ask(DESCRIBE, version, resources=[resource], **asked).results
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


def values(client: WireClient, kind: int = TOPIC, name: str = "orders") -> dict[str, str]:
    answer = describe(client, kind, name)
    assert answer.error_code == ErrorCode.NONE
    return {entry.name: entry.value for entry in answer.configs}


def own(client: WireClient) -> dict[str, str]:
    """What the topic says for itself."""
    configs = describe(client, TOPIC, "orders").configs
    return {entry.name: entry.value for entry in configs if entry.config_source == TOPIC_CONFIG}


def alter(client: WireClient, wanted: dict[str, str | None], *, version: int = 2, validate_only: bool = False):
    configs = [{"name": name, "value": value} for name, value in wanted.items()]
    resource = {"resource_type": TOPIC, "resource_name": "orders", "configs": configs}
    (answer,) = client.ask(ALTER, version, resources=[resource], validate_only=validate_only).responses
    return answer


def change(client: WireClient, *steps: tuple[int, str, str | None], version: int = 1, validate_only: bool = False):
    configs = [{"name": name, "config_operation": operation, "value": value} for operation, name, value in steps]
    resource = {"resource_type": TOPIC, "resource_name": "orders", "configs": configs}
    (answer,) = client.ask(INCREMENTAL, version, resources=[resource], validate_only=validate_only).responses
    assert (answer.resource_type, answer.resource_name) == (TOPIC, "orders")
    return answer


class TestDescribing:
    @pytest.mark.parametrize("version", range(1, 5))
    def test_a_topic_tells_every_setting_and_who_said_it(self, client: WireClient, version: int):
        answer = describe(client, TOPIC, "orders", version=version)

        assert answer.error_code == ErrorCode.NONE
        told = {entry.name: (entry.value, entry.config_source) for entry in answer.configs}
        assert len(told) == 28  # the 26 of Kafka 2.6 and two of KIP-937
        assert told["segment.bytes"] == ("5000", TOPIC_CONFIG)
        assert told["cleanup.policy"] == ("compact", TOPIC_CONFIG)
        assert told["retention.ms"] == ("1000", STATIC)
        assert told["max.message.bytes"] == ("1048588", DEFAULT)
        assert told["min.insync.replicas"] == ("1", DEFAULT)
        assert not any(entry.read_only or entry.is_sensitive or entry.synonyms for entry in answer.configs)

    @pytest.mark.parametrize("version", range(1, 5))
    def test_synonyms_are_told_from_the_strongest_on(self, client: WireClient, version: int):
        names = ("segment.bytes", "retention.ms")
        answer = describe(client, TOPIC, "orders", *names, version=version, include_synonyms=True)

        told = {entry.name: [(s.name, s.value, s.source) for s in entry.synonyms] for entry in answer.configs}
        assert told == {
            "segment.bytes": [
                ("segment.bytes", "5000", TOPIC_CONFIG),
                ("log.segment.bytes", "1073741824", DEFAULT),
            ],
            "retention.ms": [("log.retention.ms", "1000", STATIC), ("log.retention.hours", "168", DEFAULT)],
        }

    @pytest.mark.parametrize("version", [3, 4])
    def test_kinds_and_documentation_are_told_to_those_who_ask(self, client: WireClient, version: int):
        names = ("segment.bytes", "retention.ms", "cleanup.policy", "preallocate", "min.cleanable.dirty.ratio")

        plain = describe(client, TOPIC, "orders", *names, version=version)
        full = describe(client, TOPIC, "orders", *names, version=version, include_documentation=True)

        assert {entry.name: entry.config_type for entry in plain.configs} == {
            "segment.bytes": 3,
            "retention.ms": 5,
            "cleanup.policy": 7,
            "preallocate": 1,
            "min.cleanable.dirty.ratio": 6,
        }
        assert {entry.documentation for entry in plain.configs} == {None}
        assert all(entry.documentation for entry in full.configs)

    def test_the_broker_says_what_its_settings_mean_to_those_who_ask(self, client: WireClient):
        full = describe(client, BROKER, "0", version=4, include_documentation=True)

        assert all(entry.documentation for entry in full.configs)

    @pytest.mark.parametrize("version", range(1, 5))
    def test_the_broker_tells_its_own_settings(self, client: WireClient, version: int):
        answer = describe(client, BROKER, "0", version=version, include_synonyms=True)

        told = {entry.name: entry for entry in answer.configs}
        assert (told["num.partitions"].value, told["num.partitions"].config_source) == ("2", STATIC)
        assert (told["broker.id"].value, told["broker.id"].config_source) == ("0", DEFAULT)
        assert told["log.dirs"].value == "/memory"
        assert [(s.value, s.source) for s in told["num.partitions"].synonyms] == [("2", STATIC), ("1", DEFAULT)]
        changeable = {entry.name for entry in answer.configs if not entry.read_only}
        assert {"log.retention.ms", "message.max.bytes", "log.cleanup.policy", "log.cleaner.backoff.ms"} <= changeable
        assert not {"num.partitions", "log.retention.hours", "offsets.retention.minutes", "broker.id"} & changeable

    def test_nothing_was_changed_for_all_brokers(self, client: WireClient):
        answer = describe(client, BROKER, "")

        assert (answer.error_code, answer.configs) == (ErrorCode.NONE, ())

    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "", ErrorCode.INVALID_TOPIC),
            (TOPIC, "a/b", ErrorCode.INVALID_TOPIC),
            (BROKER, "1", ErrorCode.INVALID_REQUEST),
            (BROKER, "me", ErrorCode.INVALID_REQUEST),
            (BROKER_LOGGER, "0", ErrorCode.INVALID_REQUEST),
            (0, "", ErrorCode.INVALID_REQUEST),
            (-1, "", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_is_not_there_cannot_be_described(self, client: WireClient, kind: int, name: str, error: ErrorCode):
        answer = describe(client, kind, name)

        assert (answer.error_code, answer.configs) == (error, ())

    def test_keys_that_are_unknown_are_passed_over(self, client: WireClient):
        answer = describe(client, TOPIC, "orders", "no.such.setting", "segment.ms")

        assert [entry.name for entry in answer.configs] == ["segment.ms"]

    def test_the_offsets_topic_is_compacted_by_its_own_setting(self, client: WireClient):
        client.ask(FIND_COORDINATOR, 2, key="g")

        answer = describe(client, TOPIC, "__consumer_offsets", "cleanup.policy", "segment.bytes")

        assert {(entry.value, entry.config_source) for entry in answer.configs} == {
            ("compact", TOPIC_CONFIG),
            ("104857600", TOPIC_CONFIG),
        }


class TestAltering:
    @pytest.mark.parametrize("version", range(3))
    def test_the_settings_become_exactly_the_given_ones(self, broker: Running, client: WireClient, version: int):
        answer = alter(client, {"retention.ms": "77"}, version=version)

        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        assert own(client) == {"retention.ms": "77"}
        config = broker.on_loop(lambda: broker.broker.topics.log("orders", 0).config)
        assert (config.retention_ms, config.segment_bytes) == (77, 1 << 30)

    @pytest.mark.parametrize("version", range(3))
    def test_validate_only_changes_nothing(self, client: WireClient, version: int):
        before = own(client)

        good = alter(client, {"retention.ms": "77"}, version=version, validate_only=True)
        bad = alter(client, {"retention.ms": "-77"}, version=version, validate_only=True)

        assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.INVALID_CONFIG)
        assert own(client) == before

    @pytest.mark.parametrize(
        ("wanted", "error"),
        [
            ({"no.such.setting": "1"}, ErrorCode.INVALID_CONFIG),
            ({"retention.ms": "5", "segment.bytes": "-1"}, ErrorCode.INVALID_CONFIG),
            ({"cleanup.policy": "keep"}, ErrorCode.INVALID_CONFIG),
            ({"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_one_wrong_setting_leaves_all_as_they_were(self, client: WireClient, wanted: dict, error: ErrorCode):
        before = own(client)

        answer = alter(client, wanted)

        assert answer.error_code == error
        assert answer.error_message
        assert own(client) == before

    @pytest.mark.parametrize("api", [ALTER, INCREMENTAL])
    @pytest.mark.parametrize(
        ("kind", "name", "error"),
        [
            (TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (TOPIC, "..", ErrorCode.INVALID_TOPIC),
            (BROKER, "1", ErrorCode.INVALID_REQUEST),
            (BROKER_LOGGER, "0", ErrorCode.INVALID_REQUEST),
            (77, "", ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_what_is_not_there_cannot_be_changed(
        self, client: WireClient, api: int, kind: int, name: str, error: ErrorCode
    ):
        answer = client.ask(api, 1, resources=[{"resource_type": kind, "resource_name": name}])

        assert answer.responses[0].error_code == error

    def test_a_topic_that_is_named_twice_is_not_changed(self, client: WireClient):
        before = own(client)
        resource = {"resource_type": TOPIC, "resource_name": "orders", "configs": []}

        (answer,) = client.ask(ALTER, 2, resources=[resource, resource]).responses

        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert own(client) == before

    def test_changes_survive_a_restart(self, tmp_path: Path):
        with running(tmp_path) as broker, broker.client() as client:
            topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
            client.ask(CREATE_TOPICS, 4, topics=[topic], timeout=1_000)
            alter(client, {"retention.ms": "77"})

        with running(tmp_path) as broker, broker.client() as client:
            assert own(client) == {"retention.ms": "77"}


class TestAlteringSome:
    @pytest.mark.parametrize("version", range(2))
    def test_the_other_settings_stay(self, client: WireClient, version: int):
        answer = change(client, (SET, "retention.ms", "77"), (REMOVE, "cleanup.policy", None), version=version)

        assert answer.error_code == ErrorCode.NONE
        assert own(client) == {"segment.bytes": "5000", "retention.ms": "77"}

    def test_what_is_not_set_can_be_removed(self, client: WireClient):
        assert change(client, (REMOVE, "retention.ms", None)).error_code == ErrorCode.NONE

    def test_lists_grow_and_shrink(self, client: WireClient):
        change(client, (APPEND, "cleanup.policy", "delete"))
        assert own(client)["cleanup.policy"] == "compact,delete"

        change(client, (APPEND, "cleanup.policy", "compact"))
        assert own(client)["cleanup.policy"] == "compact,delete"

        change(client, (SUBTRACT, "cleanup.policy", "compact"))
        assert own(client)["cleanup.policy"] == "delete"

    def test_a_list_that_the_topic_does_not_have_begins_as_the_default(self, client: WireClient):
        change(client, (REMOVE, "cleanup.policy", None))

        change(client, (APPEND, "cleanup.policy", "compact"))

        assert own(client)["cleanup.policy"] == "delete,compact"

    @pytest.mark.parametrize("version", range(2))
    def test_validate_only_changes_nothing(self, client: WireClient, version: int):
        before = own(client)

        answer = change(client, (SET, "retention.ms", "77"), version=version, validate_only=True)

        assert answer.error_code == ErrorCode.NONE
        assert own(client) == before

    @pytest.mark.parametrize(
        ("steps", "error"),
        [
            ([(SET, "no.such.setting", "1")], ErrorCode.INVALID_CONFIG),
            ([(SET, "segment.bytes", "-1")], ErrorCode.INVALID_CONFIG),
            ([(SET, "retention.ms", "5"), (SET, "segment.bytes", "")], ErrorCode.INVALID_CONFIG),
            ([(APPEND, "cleanup.policy", "keep")], ErrorCode.INVALID_CONFIG),
            ([(APPEND, "no.such.setting", "1")], ErrorCode.INVALID_CONFIG),
            ([(APPEND, "segment.bytes", "1")], ErrorCode.INVALID_REQUEST),
            ([(SUBTRACT, "segment.bytes", "1")], ErrorCode.INVALID_REQUEST),
            ([(SET, "segment.bytes", None)], ErrorCode.INVALID_REQUEST),
            ([(APPEND, "cleanup.policy", None)], ErrorCode.INVALID_REQUEST),
            ([(SET, "segment.ms", "1"), (REMOVE, "segment.ms", None)], ErrorCode.INVALID_REQUEST),
            ([(4, "segment.bytes", "1")], ErrorCode.INVALID_REQUEST),
            ([(-1, "segment.bytes", "1")], ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_one_wrong_step_leaves_all_as_it_was(self, client: WireClient, steps: list, error: ErrorCode):
        before = own(client)

        answer = change(client, *steps)

        assert answer.error_code == error
        assert answer.error_message
        assert own(client) == before
