"""`kohort groups`: what it shows of groups of real clients, and what it refuses."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kohort.cli.group_options import duration, topic_partitions
from kohort.cli.groups import groups
from kohort.errors import KohortError
from kohort.testing import Broker
from tests.broker.group_clients import commit as send_commit
from tests.broker.group_clients import settle
from tests.broker.wire_client import WireClient
from tests.cli.conftest import Run
from tests.cli.group_scenes import (
    HOSTILE,
    TOPIC,
    commit,
    commit_as_is,
    member,
    opaque_member,
    rows,
    run,
    told,
    told_broker,
)

KOHORT = Path(sys.executable).with_name("kohort")
PATIENCE_S = 600


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One group at rest, one with a static member; only looked at here."""
    with told_broker() as broker:
        commit(broker, "billing", {0: 10, 1: 3}, "by hand")
        commit(broker, "readers", {0: 29})
        with member(broker, "readers", "reader-1", **{"group.instance.id": "till"}):
            yield broker


def test_groups_are_listed_one_a_line(broker: Broker) -> None:
    done = run(broker, "list")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "billing\nreaders\n", "")


def test_a_list_has_states_and_types_if_asked(broker: Broker) -> None:
    assert rows(run(broker, "list", "--state").stdout) == [
        ["GROUP", "STATE"],
        ["billing", "Empty"],
        ["readers", "Stable"],
    ]
    assert rows(run(broker, "list", "--state", "stable, dead").stdout)[1:] == [["readers", "Stable"]]
    assert rows(run(broker, "list", "--type", "--state", "empty").stdout) == [
        ["GROUP", "TYPE", "STATE"],
        ["billing", "Classic", "Empty"],
    ]
    assert told(broker, "list", "--type", "consumer") == []
    assert told(broker, "list", "--state", "Stable") == [
        {"group": "readers", "protocol_type": "consumer", "state": "Stable", "type": "Classic"}
    ]


def test_offsets_are_described_with_their_lag(broker: Broker) -> None:
    done = run(broker, "describe", "--group", "billing")
    assert done.exit_code == 0
    assert rows(done.stdout) == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"],
        ["billing", TOPIC, "0", "10", "30", "20", "-", "-", "-"],
        ["billing", TOPIC, "1", "3", "7", "4", "-", "-", "-"],
    ]
    assert done.stderr == "\nConsumer group 'billing' has no active members.\n"


def test_partitions_of_members_are_described_with_and_without_an_offset(broker: Broker) -> None:
    (static,) = broker.groups()["readers"].members
    found = rows(run(broker, "describe", "--group", "readers").stdout)
    who = [static.member_id, static.client_host, "reader-1"]
    assert found[1:] == [
        ["readers", TOPIC, "0", "29", "30", "1", *who],
        ["readers", TOPIC, "1", "-", "7", "-", *who],
        ["readers", TOPIC, "2", "-", "0", "-", *who],
    ]


def test_members_and_states_are_described(broker: Broker) -> None:
    (static,) = broker.groups()["readers"].members
    heads = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    row = ["readers", static.member_id, "till", static.client_host, "reader-1", "3"]
    assert rows(run(broker, "describe", "--group", "readers", "--members").stdout) == [heads, row]
    assert rows(run(broker, "describe", "--group", "readers", "--members", "--verbose").stdout) == [
        [*heads, "ASSIGNMENT"],
        [*row, "orders(0,1,2)"],
    ]
    state = run(broker, "describe", "--all-groups", "--state").stdout.replace(" (", "(")
    assert rows(state) == [
        ["GROUP", "COORDINATOR(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
        ["billing", f"{broker.bootstrap_servers}(0)", "-", "Empty", "0"],
        ["GROUP", "COORDINATOR(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
        ["readers", f"{broker.bootstrap_servers}(0)", "range", "Stable", "1"],
    ]


def test_json_has_groups_members_and_offsets(broker: Broker) -> None:
    found = told(broker, "describe", "--all-groups")
    assert set(found) == {"groups", "offsets"}
    (static,) = found["groups"]["readers"]["members"]
    assert (static["client_id"], static["instance_id"], static["subscription"]) == ("reader-1", "till", [TOPIC])
    assert static["assignment"] == [[TOPIC, 0], [TOPIC, 1], [TOPIC, 2]]
    assert found["groups"]["billing"]["state"] == "Empty"
    lags = {(row["group"], row["partition"]): row for row in found["offsets"]}
    assert (lags["billing", 0]["offset"], lags["billing", 0]["lag"]) == (10, 20)
    # confluent-kafka sends the NUL too that ends a text in C.
    assert (lags["billing", 0]["metadata"], lags["billing", 0]["member_id"]) == ("by hand\0", None)
    assert (lags["readers", 1]["offset"], lags["readers", 1]["lag"]) == (None, None)
    assert set(told(broker, "describe", "--all-groups", "--members")) == {"groups"}


def test_a_group_that_does_not_exist_is_told_beside_those_that_do(broker: Broker) -> None:
    done = run(broker, "describe", "--group", "billing", "--group", "nobody")
    assert done.exit_code == 1
    assert "kohort: Consumer group 'nobody' does not exist." in done.stderr
    assert len(rows(done.stdout)) == 3


def test_a_partition_whose_end_nobody_knows_is_told_beside_its_row() -> None:
    with told_broker() as broker:
        commit(broker, "g", {0: 5})
        broker.fail_next("ListOffsets", "UNKNOWN_TOPIC_OR_PARTITION")
        done = run(broker, "describe", "--group", "g")
        assert done.exit_code == 0
        assert rows(done.stdout)[1] == ["g", TOPIC, "0", "5", "-", "-", "-", "-", "-"]
        assert "the end of 'orders-0' is not known: there is no such topic partition" in done.stderr


def test_a_coordinator_that_moves_is_found_again() -> None:
    with told_broker() as broker:
        commit(broker, "g", {0: 5})
        faults = [
            broker.fail_next("DescribeGroups", "NOT_COORDINATOR"),
            broker.fail_next("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", times=2),
            broker.fail_next("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
            broker.fail_next("ListOffsets", "NOT_LEADER_OR_FOLLOWER"),
            broker.fail_next("ListGroups", "COORDINATOR_LOAD_IN_PROGRESS"),
        ]
        found = told(broker, "describe", "--all-groups")
        assert [row["lag"] for row in found["offsets"]] == [25]
        assert [fault.taken for fault in faults] == [1, 2, 1, 1, 1]


def test_a_cluster_that_never_answers_is_told_in_time() -> None:
    with told_broker() as broker:
        commit(broker, "g", {0: 5})
        with broker.fail_next("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", times=None):
            done = run(broker, "describe", "--group", "g", "--timeout", "500")
        assert isinstance(done.exception, KohortError)
        assert str(done.exception).endswith("group 'g': COORDINATOR_LOAD_IN_PROGRESS")
        held = broker.hold_next("ListGroups")
        done = run(broker, "list", "--timeout", "500")
        assert isinstance(done.exception, KohortError)
        assert str(done.exception) == f"{broker.bootstrap_servers}: does not answer"
        held.release()


def test_one_group_of_many_that_fails_is_told_in_one_line(kohort: Run) -> None:
    with told_broker() as broker:
        for number in range(60):
            commit_as_is(broker, f"g{number}", 5)
        with broker.fail_next("OffsetFetch", "UNKNOWN_SERVER_ERROR", when=lambda asked: asked.group_id == "g7"):
            done = kohort("groups", "describe", "--bootstrap", broker.bootstrap_servers, "--all-groups")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"kohort: {broker.bootstrap_servers}: group 'g7': UNKNOWN_SERVER_ERROR\n"


def test_groups_that_are_not_of_consumers_are_told_only_if_they_are_named() -> None:
    with told_broker() as broker, opaque_member(broker, "workers", "connect"):
        commit(broker, "billing", {0: 10})
        assert run(broker, "list").stdout == "billing\n"
        assert set(told(broker, "describe", "--all-groups")["groups"]) == {"billing"}
        (worker,) = told(broker, "describe", "--group", "workers")["groups"]["workers"]["members"]
        assert (worker["subscription"], worker["assignment"]) == (None, None)
        shown = rows(run(broker, "describe", "--group", "workers", "--members", "--verbose").stdout)
        assert shown[1][-2:] == ["-", "-"]
        assert rows(run(broker, "describe", "--group", "workers").stdout) == []


def test_hostile_names_are_inert_on_a_terminal_and_whole_in_json() -> None:
    with told_broker() as broker:
        for name in HOSTILE:
            commit_as_is(broker, name, 2)
        assert [group["group"] for group in told(broker, "list")] == sorted(HOSTILE)
        assert {row["group"] for row in told(broker, "describe", "--all-groups")["offsets"]} == set(HOSTILE)
        for arguments in (["list"], ["list", "--state"], ["describe", "--all-groups"]):
            done = run(broker, *arguments)
            assert done.exit_code == 0
            for character in "\x1b\x07\u202e\0\t":
                assert character not in done.output
            assert "two\\nlines" in done.stdout
            assert "\x1b[31m" not in done.output
        state = run(broker, "describe", "--all-groups", "--state")
        assert max(map(len, state.stdout.splitlines())) < 250
        deleted = run(broker, "delete", "--all-groups", "--yes")
        assert deleted.exit_code == 0
        assert "\x1b" not in deleted.output
        assert broker.groups() == {}


@pytest.mark.parametrize("name", ["<b>\x1b[31m\u202e=1+1\n\0", "x" * 32_000], ids=["odd", "long"])
def test_hostile_members_are_inert_on_a_terminal_and_whole_in_json(name: str) -> None:
    with told_broker() as broker, WireClient(broker.port, client_id=name) as client:
        assert send_commit(client, "g", TOPIC, {0: 2}, settle(client, "g", TOPIC, 0)) == 0
        for more in ([], ["--members", "--verbose"], ["--state"]):
            done = run(broker, "describe", "--group", "g", *more)
            assert done.exit_code == 0
            assert all(line.isprintable() for line in done.output.splitlines())
            assert max(map(len, done.output.splitlines())) < 500
        (found,) = told(broker, "describe", "--group", "g")["groups"]["g"]["members"]
        assert found["client_id"] == name
        assert found["member_id"].startswith(name)


def test_every_command_has_help_with_examples(kohort: Run) -> None:
    assert set(groups.commands) == {"list", "describe", "reset", "delete", "delete-offsets", "export", "import"}
    for name in groups.commands:
        done = kohort("groups", name, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert "Examples:\n" in done.stdout
        assert f"    kohort groups {name} " in done.stdout


EXAMPLES = [
    line.strip()
    for command in groups.commands.values()
    for line in (command.help or "").splitlines()
    if line.strip().startswith("kohort groups ")
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_help_works(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "offsets.csv").write_text("billing,orders,0,4\n")
    (tmp_path / "billing.csv").write_text("orders,0,4\n")
    with told_broker() as broker:
        for name in ("billing", "old-billing"):
            commit(broker, name, {0: 10, 1: 3, 2: 0})
        words = example.replace("localhost:9092", broker.bootstrap_servers).split()
        done = subprocess.run([KOHORT, *words[1:]], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "--bootstrap", "h:1", "--state", "sleepy"],
        ["list", "--bootstrap", "h:1", "--type", "share"],
        ["describe", "--bootstrap", "h:1"],
        ["describe", "--bootstrap", "h:1", "--group", "g", "--all-groups"],
        ["describe", "--bootstrap", "h:1", "--group", "x" * 32_768],
        ["describe", "--bootstrap", "h:1", "--group", b"\xff\xfe"],
        ["reset", "--bootstrap", "h:1", "--group", "g"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--to-earliest"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--to-earliest", "--to-latest"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--to-earliest", "--execute", "--dry-run"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--all-topics", "--to-earliest"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--from-file", "f"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t:x", "--to-earliest"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t:9999999999", "--to-earliest"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--to-offset", "-1"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--to-datetime", "yesterday"],
        ["reset", "--bootstrap", "h:1", "--group", "g", "--topic", "t", "--by-duration", "2 hours"],
        ["describe", "--bootstrap", "h:1", "--group", "g", "--members", "--state"],
        ["describe", "--bootstrap", "h:1", "--group", "g", "--state", "--verbose"],
        ["delete", "--bootstrap", "h:1", "--group", "g", "--yes"],
        ["delete-offsets", "--bootstrap", "h:1", "--group", "g"],
        ["import", "--bootstrap", "h:1"],
        ["import", "f", "--bootstrap", "h:1", "--execute", "--dry-run"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    done = subprocess.run([KOHORT, "groups", *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:1", "a:b", ":", "", "h:99999", f"{'x' * 300}:1", "new\nline:1"])
def test_an_address_that_is_none_is_told_in_one_line(kohort: Run, address: str) -> None:
    done = kohort("groups", "list", "--bootstrap", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("kohort: ")
    assert done.stderr.count("\n") == 1


def test_files_that_are_not_there_are_told_in_one_line(kohort: Run, broker: Broker, tmp_path: Path) -> None:
    to = ("--bootstrap", broker.bootstrap_servers)
    nowhere = tmp_path / "no" / "where"
    for arguments in (
        ("list", *to, "--command-config", nowhere),
        ("import", nowhere, *to),
        ("import", tmp_path, *to),
        ("export", *to, "--all-groups", "--out", nowhere),
    ):
        done = kohort("groups", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(rf"kohort: {re.escape(str(tmp_path))}\S*: .*\n", done.stderr), done.stderr


def test_ctrl_c_ends_it_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    with told_broker() as broker:
        commit(broker, "g", {0: 5})
        held = broker.hold_next("OffsetFetch")
        command = [KOHORT, "groups", "export", "--bootstrap", broker.bootstrap_servers, "--group", "g"]
        process = subprocess.Popen([*command, "--out", tmp_path / "out.csv"], stderr=subprocess.PIPE, text=True)
        held.wait()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
        held.release()
    assert (process.returncode, stderr.strip()) == (130, "kohort: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("no_color", [True, False])
def test_a_terminal_gets_no_colours(broker: Broker, no_color: bool) -> None:
    """There are none, so NO_COLOR has nothing to forbid."""
    text = on_terminal(["describe", "--bootstrap", broker.bootstrap_servers, "--all-groups"], no_color=no_color)
    assert "CURRENT-OFFSET" in text
    assert "\x1b" not in text


def on_terminal(arguments: list[str], *, no_color: bool = False) -> str:
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    environment = os.environ | ({"NO_COLOR": "1"} if no_color else {})
    process = subprocess.Popen([KOHORT, "groups", *arguments], stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    text = b""
    with open(ours, "rb", buffering=0, closefd=True) as terminal:
        while True:
            try:
                more = terminal.read(4096)
            except OSError:  # this is how Linux tells that the other end is closed
                break
            if not more:
                break
            text += more
    process.wait(PATIENCE_S)
    return text.decode()


def test_csv_with_names_that_would_move_a_terminal_is_not_sent_to_one() -> None:
    with told_broker() as broker:
        commit(broker, "red\x1b[31m", {0: 5})
        text = on_terminal(["export", "--bootstrap", broker.bootstrap_servers, "--all-groups"])
        assert "\x1b" not in text
        assert "kohort: there are names that would move a terminal" in text
        text = on_terminal(["export", "--bootstrap", broker.bootstrap_servers, "--all-groups", "--format", "json"])
        assert json.loads(text)["offsets"][0]["group"] == "red\x1b[31m"


def test_a_subcommand_is_completed_by_the_shell(kohort: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_KOHORT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "kohort groups de")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert kohort().stdout.split() == ["plain,delete", "plain,delete-offsets", "plain,describe"]


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("P1D", 86_400_000),
        ("P1DT2H3M4S", 93_784_000),
        ("PT0.5S", 500),
        ("pt1.0019s", 1001),
        ("-PT1M", -60_000),
        ("PT-1M", -60_000),
        ("PT-1.5S", -1500),
        ("P-1DT1H", -82_800_000),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, millis: int) -> None:
    assert duration(text) == millis


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1Y", "PT1H30", "P1D ", "PT1.S5", "٣"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        duration(text)


def test_topics_are_read_with_and_without_partitions() -> None:
    assert topic_partitions("orders") == ("orders", None)
    assert topic_partitions("orders:0,2,2") == ("orders", (0, 2))
    for bad in ("", ":1", "orders:", "orders:1,", "orders:-1", "orders:a"):
        with pytest.raises(click.BadParameter):
            topic_partitions(bad)
