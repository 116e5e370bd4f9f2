"""`kohort quotas`: set, shown and removed on a running broker."""

import json
from collections.abc import Iterator

import pytest

from kohort.testing import Broker
from tests.cli.commands import Done, run_main


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def quotas(broker: Broker, command: str, *arguments: str) -> Done:
    return run_main("quotas", command, "--bootstrap", broker.bootstrap_servers, *arguments)


def listed(broker: Broker, *arguments: str) -> list[list[str]]:
    done = quotas(broker, "list", *arguments)
    assert (done.code, done.stderr) == (0, "")
    return [line.split() for line in done.stdout.splitlines()]


def test_a_life_of_quotas(broker: Broker) -> None:
    head = ["USER", "CLIENT-ID", "PRODUCER-BYTE-RATE", "CONSUMER-BYTE-RATE", "REQUEST-PERCENTAGE"]
    assert listed(broker) == [head]
    for arguments in (
        ("--user", "alice", "--producer-byte-rate", "1048576"),
        ("--user", "alice", "--request-percentage", "12.5"),
        ("--user", "alice", "--client-id", "app", "--consumer-byte-rate", "7"),
        ("--client-defaults", "--consumer-byte-rate", "8"),
        ("--user-defaults", "--client-id", "-", "--consumer-byte-rate", "9"),
    ):
        assert quotas(broker, "set", *arguments) == Done(0, "", "")
    assert listed(broker) == [
        head,
        ["-", "<default>", "-", "8", "-"],
        ["<default>", "-", "-", "9", "-"],
        ["alice", "app", "-", "7", "-"],
        ["alice", "-", "1048576", "-", "12.5"],
    ]
    assert listed(broker, "--user-defaults") == [head, ["<default>", "-", "-", "9", "-"]]
    assert quotas(broker, "remove", "--user", "alice", "--quota", "request_percentage").code == 0
    done = quotas(broker, "list", "--user", "alice", "--format", "json")
    assert json.loads(done.stdout) == [
        {
            "entity": [{"type": "user", "name": "alice"}, {"type": "client-id", "name": "app"}],
            "quotas": {"consumer_byte_rate": 7},
        },
        {"entity": [{"type": "user", "name": "alice"}], "quotas": {"producer_byte_rate": 1048576}},
    ]
    assert quotas(broker, "remove", "--user", "alice").code == 0
    assert quotas(broker, "remove", "--user", "alice", "--client-id", "app").code == 0
    assert len(listed(broker)) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "--producer-byte-rate", "1"),
        ("set", "--user", "alice"),
        ("set", "--user", "alice", "--user-defaults", "--producer-byte-rate", "1"),
        ("set", "--user", "alice", "--producer-byte-rate", "0"),
        ("set", "--user", "alice", "--request-percentage", "0"),
        ("remove",),
        ("remove", "--client-id", "a", "--client-defaults"),
        ("remove", "--user", "alice", "--quota", "no_such_rate"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(broker: Broker, arguments: tuple[str, ...]) -> None:
    done = quotas(broker, *arguments)
    assert done.code == 2
    assert "Error:" in done.stderr or "kohort:" in done.stderr


@pytest.mark.parametrize("arguments", [("--user", ""), ("--user", "a", "--request-percentage", "inf")])
def test_what_the_broker_refuses_is_one_line(broker: Broker, arguments: tuple[str, ...]) -> None:
    done = quotas(broker, "set", *arguments, "--producer-byte-rate", "1")
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert "INVALID_REQUEST" in done.stderr


def test_a_name_moves_no_terminal(broker: Broker) -> None:
    assert quotas(broker, "set", "--user", "\x1b[31m\u202e\n", "--producer-byte-rate", "1").code == 0
    shown = quotas(broker, "list", "--user", "\x1b[31m\u202e\n").stdout
    assert "\x1b" not in shown
    assert r"\x1b[31m\u202e\n" in shown
