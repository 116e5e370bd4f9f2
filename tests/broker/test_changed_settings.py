"""A broker's settings that are changed while it runs (KIP-226): who may say what, what follows, and that it stays."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.broker import Broker
from kohort.broker.settings import BrokerConfig
from kohort.clock import SystemClock
from kohort.errors import CorruptLog, ErrorCode
from kohort.log.files import RealFiles
from tests.broker.data_plane import batch, make_topic, produce
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

DESCRIBE, ALTER, INCREMENTAL = 32, 33, 44
TOPIC, BROKER = 2, 4
TOPIC_CONFIG, DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = range(1, 6)
SET, REMOVE, APPEND, SUBTRACT = range(4)
ALL, ME = "", "0"


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings={"message.max.bytes": "5000"}) as broker:
        make_topic(broker)
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def change(client: WireClient, name: str, *steps: tuple[int, str, str | None], validate_only: bool = False) -> Any:
    configs = [{"name": setting, "config_operation": step, "value": value} for step, setting, value in steps]
    resource = {"resource_type": BROKER, "resource_name": name, "configs": configs}
    (answer,) = client.ask(INCREMENTAL, 1, resources=[resource], validate_only=validate_only).responses
    assert (answer.resource_type, answer.resource_name) == (BROKER, name)
    return answer


def become(client: WireClient, name: str, **wanted: str) -> Any:
    configs = [{"name": setting.replace("_", "."), "value": value} for setting, value in wanted.items()]
    resource = {"resource_type": BROKER, "resource_name": name, "configs": configs}
    (answer,) = client.ask(ALTER, 2, resources=[resource], validate_only=False).responses
    return answer


def told(client: WireClient, kind: int, name: str) -> dict[str, tuple[str | None, int]]:
    """Values, and who said them."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    (answer,) = client.ask(DESCRIBE, 4, resources=[resource], include_synonyms=True).results
    assert answer.error_code == ErrorCode.NONE
    for entry in answer.configs:
        assert [synonym.source for synonym in entry.synonyms] == sorted(synonym.source for synonym in entry.synonyms)
    return {entry.name: (entry.value, entry.config_source) for entry in answer.configs}


def test_a_change_for_all_brokers_counts_before_the_command_line(client: WireClient) -> None:
    assert told(client, BROKER, ME)["message.max.bytes"] == ("5000", STATIC)
    assert change(client, ALL, (SET, "message.max.bytes", "6000")).error_code == ErrorCode.NONE
    assert told(client, BROKER, ME)["message.max.bytes"] == ("6000", DYNAMIC_DEFAULT)
    assert told(client, BROKER, ALL) == {"message.max.bytes": ("6000", DYNAMIC_DEFAULT)}
    assert told(client, TOPIC, "orders")["max.message.bytes"] == ("6000", DYNAMIC_DEFAULT)


def test_a_change_for_this_broker_counts_before_one_for_all(client: WireClient) -> None:
    change(client, ALL, (SET, "message.max.bytes", "6000"))
    change(client, ME, (SET, "message.max.bytes", "7000"))
    assert told(client, BROKER, ME)["message.max.bytes"] == ("7000", DYNAMIC)
    assert told(client, BROKER, ALL) == {"message.max.bytes": ("6000", DYNAMIC_DEFAULT)}
    change(client, ME, (REMOVE, "message.max.bytes", None))
    assert told(client, BROKER, ME)["message.max.bytes"] == ("6000", DYNAMIC_DEFAULT)
    change(client, ALL, (REMOVE, "message.max.bytes", None))
    assert told(client, BROKER, ME)["message.max.bytes"] == ("5000", STATIC)


def test_topics_follow_unless_they_say_otherwise(broker: Running, client: WireClient) -> None:
    make_topic(broker, "own", max_message_bytes="100000")
    large = batch("x" * 7_000)
    assert produce(client, large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    change(client, ALL, (SET, "message.max.bytes", "9000"), (SET, "log.retention.ms", "77"))
    assert produce(client, large).error_code == ErrorCode.NONE
    config = broker.broker.topics.log("own", 0).config
    assert (config.max_message_bytes, config.retention_ms) == (100_000, 77)
    make_topic(broker, "new")
    assert broker.broker.topics.log("new", 0).config.retention_ms == 77


def test_times_that_go_by_several_names_are_changed_by_the_finest(client: WireClient) -> None:
    change(client, ALL, (SET, "log.retention.ms", "77"))
    settings = told(client, BROKER, ME)
    assert (settings["log.retention.ms"], settings["log.retention.hours"]) == (
        ("77", DYNAMIC_DEFAULT),
        ("168", DEFAULT),
    )
    assert told(client, TOPIC, "orders")["retention.ms"] == ("77", DYNAMIC_DEFAULT)
    refused = change(client, ALL, (SET, "log.retention.hours", "1"))
    assert (refused.error_code, "log.retention.hours" in refused.error_message) == (ErrorCode.INVALID_REQUEST, True)


def test_lists_grow_and_shrink(client: WireClient) -> None:
    change(client, ALL, (APPEND, "log.cleanup.policy", "compact"))
    assert told(client, BROKER, ALL) == {"log.cleanup.policy": ("delete,compact", DYNAMIC_DEFAULT)}
    change(client, ALL, (SUBTRACT, "log.cleanup.policy", "delete"))
    assert told(client, BROKER, ALL) == {"log.cleanup.policy": ("compact", DYNAMIC_DEFAULT)}


def test_alter_configs_forgets_what_is_not_named(client: WireClient) -> None:
    become(client, ALL, log_retention_ms="77", message_max_bytes="6000")
    become(client, ALL, message_max_bytes="7000")
    assert told(client, BROKER, ALL) == {"message.max.bytes": ("7000", DYNAMIC_DEFAULT)}
    become(client, ALL)
    assert told(client, BROKER, ALL) == {}


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        (ALL, [(SET, "num.partitions", "3")]),
        (ME, [(SET, "offsets.retention.minutes", "3")]),
        (ALL, [(SET, "message.max.bytes", "6000"), (SET, "num.partitions", "3")]),
        (ALL, [(SET, "no.such.setting", "3")]),
        (ALL, [(SET, "message.max.bytes", "many")]),
        (ALL, [(SET, "message.max.bytes", "-5")]),
        (ALL, [(SET, "message.max.bytes", None)]),
        (ALL, [(SET, "log.retention.ms", "0")]),
        (ALL, [(APPEND, "message.max.bytes", "5")]),
        (ALL, [(APPEND, "log.cleanup.policy", "keep")]),
        (ALL, [(SET, "message.max.bytes", "1"), (REMOVE, "message.max.bytes", None)]),
        (ALL, [(9, "message.max.bytes", "1")]),
        ("7", [(SET, "message.max.bytes", "6000")]),
        ("me", [(SET, "message.max.bytes", "6000")]),
    ],
)
def test_what_kafka_refuses_changes_nothing(
    client: WireClient, name: str, steps: list[tuple[int, str, str | None]]
) -> None:
    before = told(client, BROKER, ME)
    refused = change(client, name, *steps)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message
    assert told(client, BROKER, ME) == before


def test_a_value_must_be_right_even_if_another_counts(client: WireClient) -> None:
    change(client, ME, (SET, "message.max.bytes", "7000"))
    assert change(client, ALL, (SET, "message.max.bytes", "many")).error_code == ErrorCode.INVALID_REQUEST
    assert told(client, BROKER, ALL) == {}


def test_a_default_that_a_topic_cannot_live_with_is_refused(broker: Running, client: WireClient) -> None:
    make_topic(broker, "quick", max_compaction_lag_ms="1000")
    refused = change(client, ALL, (SET, "log.cleaner.min.compaction.lag.ms", "5000"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert told(client, BROKER, ALL) == {}


def test_validate_only_changes_nothing(client: WireClient) -> None:
    assert change(client, ALL, (SET, "message.max.bytes", "6000"), validate_only=True).error_code == ErrorCode.NONE
    refused = change(client, ALL, (SET, "num.partitions", "6"), validate_only=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert told(client, BROKER, ALL) == {}


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        change(client, ALL, (SET, "message.max.bytes", "6000"), (SET, "log.retention.ms", "77"))
        change(client, ME, (SET, "message.max.bytes", "7000"))
    with running(tmp_path, {"log.retention.ms": "1", "log.retention.hours": "5"}) as broker, broker.client() as client:
        assert told(client, BROKER, ME)["message.max.bytes"] == ("7000", DYNAMIC)
        assert told(client, BROKER, ALL)["message.max.bytes"] == ("6000", DYNAMIC_DEFAULT)
        make_topic(broker)
        config = broker.broker.topics.log("orders", 0).config
        assert (config.max_message_bytes, config.retention_ms) == (7_000, 77)
        become(client, ALL)
        become(client, ME)
        assert broker.broker.topics.log("orders", 0).config.retention_ms == 1


def test_what_was_said_for_another_broker_stays_and_means_nothing(tmp_path: Path) -> None:
    other = {"version": 1, "all": {}, "brokers": {"7": {"message.max.bytes": "7"}}}
    (tmp_path / "settings.json").write_text(json.dumps(other))
    with running(tmp_path) as broker, broker.client() as client:
        assert told(client, BROKER, ME)["message.max.bytes"] == ("1048588", DEFAULT)
        change(client, ME, (SET, "message.max.bytes", "6000"))
    kept = json.loads((tmp_path / "settings.json").read_text())
    assert kept["brokers"] == {"7": {"message.max.bytes": "7"}, "0": {"message.max.bytes": "6000"}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2, "all": {}, "brokers": {}}',
        '{"version": 1, "all": [], "brokers": {}}',
        '{"version": 1, "all": {"message.max.bytes": 5}, "brokers": {}}',
        '{"version": 1, "all": {}, "brokers": {"0": null}}',
        '{"version": 1, "all": {"num.partitions": "5"}, "brokers": {}}',
        '{"version": 1, "all": {"no.such.setting": "5"}, "brokers": {}}',
        '{"version": 1, "all": {"message.max.bytes": "many"}, "brokers": {}}',
    ],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.json").write_text(content)
    config = BrokerConfig(data=str(tmp_path))
    with closing(asyncio.new_event_loop()) as loop, pytest.raises(CorruptLog, match=r"settings\.json"):
        Broker(config, RealFiles(), SystemClock(), loop, on_failure=lambda _: None)


def test_the_cleaner_follows(broker: Running, client: WireClient) -> None:
    change(client, ALL, (SET, "log.cleaner.dedupe.buffer.size", "4096"), (SET, "log.cleaner.backoff.ms", "20"))
    assert broker.broker.config.log_cleaner_backoff_ms == 20
    assert broker.broker._cleaner.dedupe_buffer_size == 4096
