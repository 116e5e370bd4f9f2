"""Who is let in counts at once, is remembered no longer than it counts, and outlives the broker."""

import asyncio
import logging
from pathlib import Path

import pytest

from kohort.broker.security.acl import Acl
from kohort.broker.security.acl import Operation as Op
from kohort.broker.security.acl import ResourceType as Type
from kohort.broker.security.permission import (
    ALTER_CLUSTER,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TOPIC,
    Permission,
)
from kohort.broker.security.principal import ANONYMOUS, Principal, read_principals
from kohort.broker.settings import BadSetting, BrokerConfig, with_settings
from kohort.errors import CorruptLog, ErrorCode
from kohort.log.simulated_files import SimulatedFiles
from tests.broker.running import Running, running
from tests.broker.security.somebody import authorizer_of, authorizing, create, delete, entry, somebody
from tests.broker.wire_client import WireClient

METADATA, LIST_GROUPS = 3, 16
ALICE, BOB, ROOT = Principal("User", "alice"), Principal("User", "bob"), Principal("User", "root")
HOST = "/127.0.0.1"
PATIENCE_S = 60.0


def may(
    broker: Running, permission: Permission, name: str = "orders", *, who: Principal = ALICE, host: str = HOST
) -> bool:
    return broker.on_loop(lambda: authorizer_of(broker).may(who, host, permission, name))


def may_somewhere(broker: Running, permission: Permission, who: Principal = ALICE) -> bool:
    return broker.on_loop(lambda: authorizer_of(broker).may_somewhere(who, HOST, permission))


def entries(broker: Running) -> set[Acl]:
    return broker.on_loop(lambda: set(authorizer_of(broker)._rules))


class TestSettings:
    def test_without_one_there_is_none(self) -> None:
        with running() as broker:
            assert broker.broker.authorizer is None

    @pytest.mark.parametrize(
        "name",
        ["kafka.security.authorizer.AclAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
    )
    def test_either_of_kafkas_turns_it_on(self, name: str) -> None:
        with running(settings={"authorizer.class.name": name}) as broker:
            assert not may(broker, READ_TOPIC)

    def test_no_other_class_is_looked_for(self) -> None:
        with pytest.raises(BadSetting, match=r"os\.system"):
            with_settings(BrokerConfig(), {"authorizer.class.name": "os.system"})

    def test_super_users_have_semicolons_between_them(self) -> None:
        assert read_principals(" User:alice; User:CN=x,OU=y ;") == {ALICE, Principal("User", "CN=x,OU=y")}

    @pytest.mark.parametrize("text", ["alice", "User:", ":alice", "User:alice;bob"])
    def test_a_super_user_that_is_nobody_is_told_at_the_start(self, text: str) -> None:
        with pytest.raises(BadSetting, match=r"super\.users: .* is not TYPE:NAME"):
            with_settings(BrokerConfig(), {"super.users": text})


class TestDeciding:
    def test_what_nobody_allows_is_refused_except_to_super_users(self) -> None:
        with authorizing() as broker:
            assert not may(broker, READ_TOPIC)
            assert not may(broker, READ_TOPIC, who=ANONYMOUS)
            assert may(broker, READ_TOPIC, who=ROOT)
            assert may_somewhere(broker, WRITE_TOPIC, ROOT)

    def test_a_super_user_cannot_be_denied_anything(self) -> None:
        with authorizing() as broker:
            create(broker, entry("root", Op.ALL, Type.TOPIC, "*", deny=True))
            assert may(broker, READ_TOPIC, who=ROOT)

    def test_everybody_may_do_what_nothing_is_said_of_if_that_is_wanted(self) -> None:
        with authorizing(allow_everyone_if_no_acl_found="true") as broker:
            create(broker, entry("bob", Op.READ, Type.TOPIC, "orders"))
            assert may(broker, READ_TOPIC, "payments")
            assert not may(broker, READ_TOPIC, "orders")
            assert may(broker, READ_TOPIC, "orders", who=BOB)

    def test_a_change_counts_at_once_for_what_was_asked_before(self) -> None:
        with authorizing() as broker:
            reads = entry("alice", Op.READ, Type.TOPIC, "orders")
            assert not may(broker, READ_TOPIC)
            create(broker, reads)
            assert may(broker, READ_TOPIC)
            delete(broker, reads)
            assert not may(broker, READ_TOPIC)

    def test_what_may_be_written_to_anywhere_follows_too(self) -> None:
        with authorizing() as broker:
            writes = entry("alice", Op.WRITE, Type.TOPIC, "orders", prefixed=True)
            assert not may_somewhere(broker, WRITE_TOPIC)
            create(broker, writes)
            assert may_somewhere(broker, WRITE_TOPIC)
            create(broker, entry("alice", Op.ALL, Type.TOPIC, "ord", prefixed=True, deny=True))
            assert not may_somewhere(broker, WRITE_TOPIC)

    def test_addresses_are_compared_whichever_way_they_are_written(self) -> None:
        with authorizing() as broker:
            create(
                broker,
                entry("alice", Op.READ, Type.TOPIC, "orders", host="10.0.0.1"),
                entry("alice", Op.READ, Type.TOPIC, "orders", host="::1"),
            )
            for host in ("/10.0.0.1", "/::ffff:10.0.0.1", "/0:0:0:0:0:0:0:1", "/::1%lo"):
                assert may(broker, READ_TOPIC, host=host), host
            assert not may(broker, READ_TOPIC, host="/10.0.0.2")

    def test_resources_of_one_name_are_not_each_other(self) -> None:
        with authorizing() as broker:
            create(broker, entry("alice", Op.READ, Type.TOPIC, "orders"))
            assert not may(broker, READ_GROUP)
            assert not may(broker, ALTER_CLUSTER, "kafka-cluster")

    def test_what_is_remembered_does_not_grow_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kohort.broker.security.authorizer._MOST_REMEMBERED", 10)
        with authorizing() as broker:
            create(broker, entry("alice", Op.READ, Type.TOPIC, "orders-7"))
            for number in range(100):
                assert may(broker, READ_TOPIC, f"orders-{number}") == (number == 7)
                assert not may(broker, READ_TOPIC, "x" * 10_000)
                remembered = broker.on_loop(lambda: list(authorizer_of(broker)._remembered))
                assert len(remembered) <= 10
                assert all(len(name or "") < 300 for *_, name in remembered)


class TestKeeping:
    RULES = (
        entry("alice", Op.ALL, Type.TOPIC, "ord", prefixed=True),
        entry("User:*", Op.READ, Type.TOPIC, "orders", deny=True),
        entry("alice", Op.READ, Type.GROUP, "*", host="10.0.0.1"),
        entry("alice", Op.DESCRIBE, Type.DELEGATION_TOKEN, "token"),
        entry("alice", Op.CREATE_TOKENS, Type.USER, "User:bob"),
    )

    def test_entries_outlive_the_broker_those_that_deny_too(self, tmp_path: Path) -> None:
        with authorizing(tmp_path) as broker:
            create(broker, *self.RULES, entry("bob", Op.READ, Type.TOPIC, "orders"))
            delete(broker, entry("bob", Op.READ, Type.TOPIC, "orders"))
        with authorizing(tmp_path) as broker:
            assert entries(broker) == set(self.RULES)
            assert may(broker, WRITE_TOPIC)
            assert not may(broker, READ_TOPIC)
            assert not may(broker, READ_TOPIC, who=BOB)

    def test_they_are_kept_while_no_authorizer_asks_for_them(self, tmp_path: Path) -> None:
        with authorizing(tmp_path) as broker:
            create(broker, *self.RULES)
        with running(tmp_path) as broker:
            assert broker.broker.authorizer is None
        with authorizing(tmp_path) as broker:
            assert entries(broker) == set(self.RULES)

    def test_they_survive_the_cleaning_of_their_log(self, tmp_path: Path) -> None:
        with authorizing(tmp_path, log_cleaner_min_cleanable_ratio="0.01") as broker:
            passing = [entry("bob", Op.READ, Type.TOPIC, f"passing-{number}") for number in range(50)]
            create(broker, *self.RULES)
            create(broker, *passing)
            delete(broker, *passing)
            log = broker.on_loop(lambda: broker.broker.topics.security_log)
            assert log is not None
            broker.on_loop(log.roll)
            size = log.size
            keeping = asyncio.run_coroutine_threadsafe(broker.broker.housekeeper.round(), broker.loop)
            keeping.result(PATIENCE_S)
            assert log.size < size
        with authorizing(tmp_path) as broker:
            assert entries(broker) == set(self.RULES)
            assert not may(broker, READ_TOPIC)

    def test_more_than_one_batch_holds_are_several(self, tmp_path: Path) -> None:
        many = [entry("alice", Op.READ, Type.GROUP, f"{'ü' * 1_000}-{number}") for number in range(500)]
        with authorizing(tmp_path) as broker:
            create(broker, *many)
        with authorizing(tmp_path) as broker:
            assert entries(broker) == set(many)
            delete(broker, *many)
            assert entries(broker) == set()

    def test_what_denies_is_written_first_and_removed_last(self) -> None:
        allows = [entry("alice", Op.READ, Type.TOPIC, f"orders-{number}") for number in range(3)]
        denies = entry("alice", Op.READ, Type.TOPIC, "orders-1", deny=True)
        with authorizing() as broker:
            heard: list[list[str]] = []
            watchers = broker.broker.security_log.watchers
            broker.on_loop(lambda: watchers.append(lambda changes: heard.append([key[-1] for key in changes])))
            create(broker, *allows, denies)
            delete(broker, denies, *allows)
        assert heard == [["DENY", "ALLOW", "ALLOW", "ALLOW"], ["ALLOW", "ALLOW", "ALLOW", "DENY"]]

    def test_a_broker_that_cannot_understand_an_entry_does_not_start(self) -> None:
        files = SimulatedFiles()
        key = ("acl", "TOPIC", "LITERAL", "orders", "User:alice", "*", "READ", "DENIED")
        with running(files=files) as broker:
            told: list[ErrorCode] = []
            broker.on_loop(lambda: broker.broker.security_log.change({key: {}}, told.append))
            assert told == [ErrorCode.NONE]
        with pytest.raises(CorruptLog, match="DENIED"), authorizing(files=files):
            pass


class TestTelling:
    @pytest.fixture(autouse=True)
    def _listen(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, logger="kohort.authorizer")
        self._caplog = caplog

    def told(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records if record.name == "kohort.authorizer"]

    def ask(self, client: WireClient, *topics: str) -> None:
        client.ask(METADATA, 9, topics=[{"name": name} for name in topics])

    def test_a_refusal_is_one_line_that_says_who_wanted_what(self) -> None:
        with authorizing() as broker, somebody(broker, "alice") as client:
            self.ask(client, "payments", "orders")
        assert self.told() == [
            "denied: principal 'User:alice' from 127.0.0.1 asked with Metadata for DESCRIBE TOPIC 'orders', 'payments'"
        ]

    def test_names_cannot_break_the_line_nor_make_it_endless(self) -> None:
        with authorizing() as broker, somebody(broker, "al\nice\u202e") as client:
            self.ask(client, "a\r\nb\x1b[31m", "x" * 30_000, *(f"t{number}" for number in range(100)))
        (line,) = self.told()
        assert line.isprintable()
        assert len(line) < 1_000
        assert "'User:al\\nice\\u202e'" in line
        assert "'a\\r\\nb\\x1b[31m'" in line
        assert line.endswith("and 92 more")

    def test_what_nobody_asked_for_is_not_told(self) -> None:
        with authorizing() as broker, somebody(broker, "alice") as client:
            client.ask(METADATA, 9, topics=None)
            client.ask(LIST_GROUPS, 3)
        assert self.told() == []

    def test_who_is_let_in_is_not_told(self) -> None:
        with authorizing() as broker, somebody(broker, "alice") as client:
            create(broker, entry("alice", Op.READ, Type.TOPIC, "orders"))
            assert may(broker, DESCRIBE_TOPIC)
            self.ask(client, "orders")
        assert [line for line in self.told() if "DESCRIBE" in line] == []
