"""`kohort acls`: entries with the words of kafka-acls, told, made and removed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kohort.cli.acls import acls
from kohort.errors import KohortError
from kohort.testing import Broker
from tests.broker.running import running
from tests.broker.security.somebody import PASSWORD, ROOT, authorizing
from tests.broker.wire_client import WireClient
from tests.cli.group_scenes import HOSTILE, rows

METADATA = 3
EVERYBODY_IS_ROOT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
HEADS = ["TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]
ALICE = ("--allow-principal", "User:alice")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=EVERYBODY_IS_ROOT) as broker:
        yield broker


def run(broker: Broker, command: str, *arguments: str, **more: Any) -> Result:
    given = [command, "--bootstrap", broker.bootstrap_servers, *arguments]
    return CliRunner().invoke(acls, given, **more)


def add(broker: Broker, *arguments: str) -> None:
    done = run(broker, "add", *arguments)
    assert done.exit_code == 0, done.output


def listed(broker: Broker, *arguments: str) -> list[str]:
    """Every entry as words."""
    done = run(broker, "list", *arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    return [" ".join(one.values()) for one in json.loads(done.stdout)]


def test_what_is_added_is_listed_and_told(broker: Broker) -> None:
    done = run(broker, "add", *ALICE, "--operation", "Read", "--operation", "describe_configs", "--topic", "orders")
    assert (done.exit_code, done.stderr) == (0, "")
    wanted = [
        HEADS,
        ["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"],
        ["TOPIC", "orders", "LITERAL", "User:alice", "*", "DESCRIBE_CONFIGS", "ALLOW"],
    ]
    assert rows(done.stdout) == wanted
    assert rows(run(broker, "list").stdout) == wanted


def test_a_list_of_nothing_is_nothing(broker: Broker) -> None:
    done = run(broker, "list")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(run(broker, "list", "--format", "json").stdout) == []


def test_json_says_what_became_of_each(broker: Broker) -> None:
    done = run(broker, "add", *ALICE, "--group", "billing", "--format", "json")
    assert json.loads(done.stdout) == [
        {
            "resource_type": "GROUP",
            "name": "billing",
            "pattern_type": "LITERAL",
            "principal": "User:alice",
            "host": "*",
            "operation": "ALL",
            "permission": "ALLOW",
            "status": "Successful",
        }
    ]


def test_who_and_where_and_what_are_multiplied(broker: Broker) -> None:
    hosts = ("--allow-host", "10.0.0.1", "--allow-host", "10.0.0.2")
    denied = ("--deny-principal", "User:bob", "--deny-host", "10.0.0.3")
    add(broker, *ALICE, *hosts, *denied, "--operation", "Write", "--topic", "a", "--topic", "b")
    assert sorted(listed(broker)) == [
        f"TOPIC {topic} LITERAL {who}"
        for topic in ("a", "b")
        for who in (
            "User:alice 10.0.0.1 WRITE ALLOW",
            "User:alice 10.0.0.2 WRITE ALLOW",
            "User:bob 10.0.0.3 WRITE DENY",
        )
    ]


def test_what_a_producer_needs(broker: Broker) -> None:
    add(broker, *ALICE, "--producer", "--idempotent", "--topic", "orders", "--transactional-id", "transfers")
    assert sorted(listed(broker)) == [
        "CLUSTER kafka-cluster LITERAL User:alice * IDEMPOTENT_WRITE ALLOW",
        "TOPIC orders LITERAL User:alice * CREATE ALLOW",
        "TOPIC orders LITERAL User:alice * DESCRIBE ALLOW",
        "TOPIC orders LITERAL User:alice * WRITE ALLOW",
        "TRANSACTIONAL_ID transfers LITERAL User:alice * DESCRIBE ALLOW",
        "TRANSACTIONAL_ID transfers LITERAL User:alice * WRITE ALLOW",
    ]


def test_what_a_consumer_needs(broker: Broker) -> None:
    consumer = ("--consumer", "--topic", "ord", "--group", "bill", "--resource-pattern-type", "prefixed")
    add(broker, *ALICE, *consumer)
    assert sorted(listed(broker)) == [
        "GROUP bill PREFIXED User:alice * READ ALLOW",
        "TOPIC ord PREFIXED User:alice * DESCRIBE ALLOW",
        "TOPIC ord PREFIXED User:alice * READ ALLOW",
    ]


def test_a_list_of_some_resources_and_some_principals(broker: Broker) -> None:
    add(broker, *ALICE, "--topic", "orders", "--group", "orders", "--cluster", "--delegation-token", "t")
    add(broker, "--allow-principal", "User:bob", "--topic", "ord", "--resource-pattern-type", "prefixed")
    add(broker, "--deny-principal", "User:*", "--topic", "*")
    add(broker, *ALICE, "--user-principal", "User:bob", "--operation", "CreateTokens")

    def names(*arguments: str) -> list[str]:
        return sorted(" ".join(line.split()[:3]) for line in listed(broker, *arguments))

    assert len(names()) == 7
    assert names("--topic", "orders") == ["TOPIC orders LITERAL"]
    assert names("--topic", "orders", "--resource-pattern-type", "match") == [
        "TOPIC * LITERAL",
        "TOPIC ord PREFIXED",
        "TOPIC orders LITERAL",
    ]
    assert names("--topic", "ord", "--resource-pattern-type", "ANY") == ["TOPIC ord PREFIXED"]
    assert names("--group", "orders", "--cluster") == ["CLUSTER kafka-cluster LITERAL", "GROUP orders LITERAL"]
    assert names("--principal", "User:bob") == ["TOPIC ord PREFIXED"]


def test_what_was_added_is_removed_with_the_same_words(broker: Broker) -> None:
    words = (*ALICE, "--allow-host", "10.0.0.1", "--producer", "--topic", "orders")
    add(broker, *words)
    add(broker, *ALICE, "--operation", "Read", "--topic", "orders")
    done = run(broker, "remove", *words, "--force")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row[5] for row in rows(done.stdout)[1:]] == ["WRITE", "CREATE", "DESCRIBE"]
    assert listed(broker) == ["TOPIC orders LITERAL User:alice * READ ALLOW"]


def test_all_entries_of_a_resource_are_removed_when_nobody_is_named(broker: Broker) -> None:
    add(broker, *ALICE, "--topic", "orders", "--topic", "payments", "--cluster")
    add(broker, "--deny-principal", "User:bob", "--topic", "orders")
    assert run(broker, "remove", "--topic", "orders", "--force").exit_code == 0
    assert [line.split()[1] for line in listed(broker)] == ["payments", "kafka-cluster"]


def test_removing_asks_first(broker: Broker) -> None:
    add(broker, *ALICE, "--topic", "orders")
    done = run(broker, "remove", "--topic", "orders", input="n\n")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "User:alice" in done.stderr
    assert "Remove 1 entries?" in done.stderr
    assert len(listed(broker)) == 1
    assert run(broker, "remove", "--topic", "orders", input="y\n").exit_code == 0
    assert listed(broker) == []


@pytest.mark.parametrize("name", [name for name in HOSTILE if len(name) < 100 and "\0" not in name])
def test_any_name_can_be_given_and_breaks_no_line(broker: Broker, name: str) -> None:
    add(broker, *ALICE, "--group", name)
    shown = run(broker, "list").stdout
    assert len(shown.splitlines()) == 2
    assert all(line.isprintable() for line in shown.splitlines())
    (told,) = json.loads(run(broker, "list", "--format", "json").stdout)
    assert told["name"] == name


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--topic", "orders"), "say who"),
        (ALICE, "name a resource"),
        ((*ALICE, "--topic", "orders", "--operation", "Reed"), "'Reed' is no operation"),
        ((*ALICE, "--group", "g", "--operation", "Write"), "WRITE cannot be done with a resource of type GROUP"),
        (("--allow-principal", "alice", "--topic", "orders"), "'alice' is not TYPE:NAME"),
        ((*ALICE, "--topic", "orders", "--allow-host", "example.com"), "a host is an address or *"),
        ((*ALICE, "--topic", "orders", "--deny-host", "10.0.0.1"), "--deny-host goes with --deny-principal"),
        (("--deny-principal", "User:b", "--topic", "o", "--allow-host", "::1"), "--allow-host goes with"),
        ((*ALICE, "--topic", ""), "a resource has a name"),
        ((*ALICE, "--consumer", "--topic", "orders"), "--consumer needs --group"),
        ((*ALICE, "--producer", "--group", "g"), "need --topic"),
        ((*ALICE, "--producer", "--topic", "o", "--group", "g"), "--producer goes with"),
        ((*ALICE, "--producer", "--topic", "o", "--operation", "Read"), "go without --operation"),
        ((*ALICE, "--idempotent", "--topic", "o"), "--idempotent goes with --producer"),
        ((*ALICE, "--topic", "o", "--resource-pattern-type", "match"), "'match' is not one of"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage_and_changes_nothing(
    broker: Broker, arguments: tuple[str, ...], told: str
) -> None:
    done = run(broker, "add", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert listed(broker) == []


def test_removing_without_saying_what_is_wrong_usage(broker: Broker) -> None:
    assert run(broker, "remove", "--force").exit_code == 2
    assert run(broker, "remove", "--force", "--topic", "orders", "--operation", "Read").exit_code == 2


def test_a_cluster_without_an_authorizer_says_so() -> None:
    with Broker() as broker:
        with pytest.raises(KohortError, match="the cluster has no authorizer"):
            run(broker, "list", catch_exceptions=False)
        done = run(broker, "add", *ALICE, "--topic", "orders")
        assert done.exit_code == 1
        assert "TOPIC orders LITERAL User:alice * ALL ALLOW was not added:" in done.stderr
        assert "SECURITY_DISABLED" in done.stderr


def test_who_may_not_is_told_so_and_who_may_logs_in_with_a_file(tmp_path: Path) -> None:
    with authorizing() as running_broker:

        def as_user(name: str, *arguments: str) -> Result:
            config = tmp_path / f"{name}.properties"
            config.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
                "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="{name}" password="{PASSWORD}";\n'
            )
            given = [*arguments, "--bootstrap", running_broker.address, "--command-config", str(config)]
            return CliRunner().invoke(acls, given)

        refused = as_user("alice", "list")
        assert isinstance(refused.exception, KohortError)
        assert "CLUSTER_AUTHORIZATION_FAILED" in str(refused.exception)
        assert as_user(ROOT, "add", *ALICE, "--operation", "Describe", "--cluster").exit_code == 0
        assert rows(as_user("alice", "list").stdout)[1:] == [
            ["CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW"]
        ]


def test_an_entry_of_the_command_counts() -> None:
    """Where nobody logs in everybody is ANONYMOUS, and may be denied something from an address."""
    settings = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:root"}
    with running(settings=settings | {"allow.everyone.if.no.acl.found": "true"}) as broker:
        given = ["add", "--bootstrap", broker.address, "--deny-principal", "User:*", "--deny-host", "127.0.0.1"]
        assert CliRunner().invoke(acls, [*given, "--topic", "secret"]).exit_code == 0
        with WireClient(broker.port) as client:
            topics = client.ask(METADATA, 9, topics=[{"name": "secret"}], allow_auto_topic_creation=True).topics
            assert [topic.error_code for topic in topics] == [29]
