"""`kohort groups` changes groups: offsets reset, deleted, exported and imported; a dry run changes nothing."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kohort.errors import KohortError
from kohort.testing import Broker
from tests.cli.group_scenes import (
    HOSTILE,
    TOPIC,
    commit,
    commit_as_is,
    member,
    offsets_of,
    produce,
    rows,
    run,
    told,
    told_broker,
)

NOW = 1_790_000_000_000
KOHORT = Path(sys.executable).with_name("kohort")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with told_broker() as broker:
        commit(broker, "billing", {0: 10, 1: 3})
        yield broker


def at(broker: Broker, group: str = "billing") -> dict[int, int]:
    """The offsets of a group for the topic."""
    return {partition: offset for (_, partition), (offset, _) in offsets_of(broker, group).items()}


def reset(broker: Broker, *arguments: str, group: str = "billing") -> dict[int, int]:
    """Reset a group and see that it is as was told."""
    found = told(broker, "reset", "--group", group, *arguments, "--execute")
    assert {row["status"] for row in found} == {"Successful"}
    after = at(broker, group)
    assert {row["partition"]: row["new_offset"] for row in found}.items() <= after.items()
    return after


def test_a_dry_run_shows_and_changes_nothing(broker: Broker) -> None:
    for more in ((), ("--dry-run",)):
        done = run(broker, "reset", "--group", "billing", "--topic", TOPIC, "--to-latest", *more)
        assert done.exit_code == 0
        assert rows(done.stdout.replace("Dry run", "dry-run")) == [
            ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "CURRENT-OFFSET", "STATUS"],
            ["billing", TOPIC, "0", "30", "10", "dry-run"],
            ["billing", TOPIC, "1", "7", "3", "dry-run"],
            ["billing", TOPIC, "2", "0", "-", "dry-run"],
        ]
        assert done.stderr == "kohort: nothing was changed: --execute does it\n"
        assert at(broker) == {0: 10, 1: 3}


def test_groups_go_to_the_ends_of_logs_and_to_offsets(broker: Broker) -> None:
    assert reset(broker, "--all-topics", "--to-latest") == {0: 30, 1: 7}
    assert reset(broker, "--all-topics", "--to-earliest") == {0: 0, 1: 0}
    assert reset(broker, "--topic", f"{TOPIC}:1", "--to-offset", "5") == {0: 0, 1: 5}
    assert reset(broker, "--topic", f"{TOPIC}:0", "--topic", f"{TOPIC}:1", "--shift-by", "2") == {0: 2, 1: 7}
    assert reset(broker, "--all-topics", "--shift-by", "-1") == {0: 1, 1: 6}


def test_to_current_takes_the_end_where_there_is_no_offset(broker: Broker) -> None:
    assert reset(broker, "--topic", TOPIC, "--to-current") == {0: 10, 1: 3, 2: 0}


def test_what_lies_outside_of_the_log_becomes_its_nearest_offset(broker: Broker) -> None:
    done = run(broker, "reset", "--group", "billing", "--all-topics", "--shift-by", "-5", "--execute")
    assert at(broker) == {0: 5, 1: 0}
    assert done.stderr == (
        "kohort: warning: new offset (-2) is lower than earliest offset of 'orders-1': it becomes 0\n"
    )
    done = run(broker, "reset", "--group", "billing", "--all-topics", "--to-offset", "20", "--execute")
    assert at(broker) == {0: 20, 1: 7}
    assert "new offset (20) is higher than latest offset of 'orders-1': it becomes 7" in done.stderr
    assert reset(broker, "--all-topics", "--shift-by", str((1 << 63) - 1)) == {0: 30, 1: 7}


def test_groups_go_to_a_time() -> None:
    with Broker() as broker:
        broker.create_topic(TOPIC, 2)
        for hours in (3, 2, 1):
            produce(broker, 4, 0, timestamp=NOW - hours * 3_600_000)
        commit(broker, "billing", {0: 12, 1: 0})
        then = datetime.fromtimestamp(NOW / 1000, UTC)
        two_hours_ago = then.replace(tzinfo=None).isoformat()
        assert reset(broker, "--all-topics", "--to-datetime", str(NOW - 2 * 3_600_000)) == {0: 4, 1: 0}
        assert reset(broker, "--all-topics", "--to-datetime", str(NOW - 2 * 3_600_000 + 1)) == {0: 8, 1: 0}
        assert reset(broker, "--all-topics", "--to-datetime", two_hours_ago) == {0: 12, 1: 0}
        assert reset(broker, "--all-topics", "--to-datetime", "1970-01-01T00:00:00.000Z") == {0: 0, 1: 0}
        assert reset(broker, "--all-topics", "--by-duration", "-P40000D") == {0: 12, 1: 0}
        assert reset(broker, "--all-topics", "--by-duration", "P40000D") == {0: 0, 1: 0}


def test_a_group_that_does_not_exist_yet_gets_offsets(broker: Broker) -> None:
    assert reset(broker, "--topic", TOPIC, "--to-latest", group="newcomer") == {0: 30, 1: 7, 2: 0}
    done = run(broker, "reset", "--group", "nobody", "--all-topics", "--to-latest", "--execute")
    assert (done.exit_code, done.stderr) == (1, "kohort: group 'nobody' has no offsets\n")


def test_a_group_with_members_is_refused_and_the_others_are_not(broker: Broker) -> None:
    commit(broker, "readers", {0: 29})
    with member(broker, "readers", "reader-1"):
        done = run(broker, "reset", "--all-groups", "--all-topics", "--to-earliest", "--execute")
        assert done.exit_code == 1
        assert done.stderr == (
            "kohort: Assignments can only be reset if the group 'readers' is inactive, "
            "but the current state is Stable.\n"
        )
        assert (at(broker, "readers"), at(broker)) == ({0: 29}, {0: 0, 1: 0})


def test_a_group_that_cannot_be_reset_whole_is_left_as_it_is(broker: Broker) -> None:
    commit(broker, "all-of-it", {0: 1, 1: 1, 2: 0})
    both = ("--group", "billing", "--group", "all-of-it")
    done = run(broker, "reset", *both, "--topic", TOPIC, "--shift-by", "1", "--execute")
    assert done.exit_code == 1
    assert "Error: there is no offset to shift" in done.stdout
    assert done.stdout.count("Not done") == 2
    assert "kohort: left as they are: 'billing'" in done.stderr
    assert (at(broker), at(broker, "all-of-it")) == ({0: 10, 1: 3}, {0: 2, 1: 2, 2: 0})
    done = run(broker, "reset", "--group", "billing", "--topic", f"{TOPIC}:0,9", "--to-earliest", "--execute")
    assert "Error: there is no such topic partition (UNKNOWN_TOPIC_OR_PARTITION)" in done.stdout
    assert at(broker) == {0: 10, 1: 3}
    done = run(broker, "reset", "--group", "billing", "--topic", TOPIC, "--topic", "nix", "--to-earliest", "--execute")
    assert isinstance(done.exception, KohortError)
    assert str(done.exception) == "nothing was changed: there is no topic 'nix'"
    assert at(broker) == {0: 10, 1: 3}


def test_what_the_broker_refuses_is_told_by_row(broker: Broker) -> None:
    """Somebody joins between the look at a group and the commit."""
    broker.fail_next("OffsetCommit", "UNKNOWN_MEMBER_ID")
    done = run(broker, "reset", "--group", "billing", "--all-topics", "--to-latest", "--execute")
    assert done.exit_code == 1
    assert done.stdout.count("Error: the group has members (UNKNOWN_MEMBER_ID)") == 2


def test_groups_are_deleted_unless_they_have_members(broker: Broker) -> None:
    commit(broker, "readers", {0: 29})
    with member(broker, "readers", "reader-1"):
        wanted = ("--group", "billing", "--group", "readers", "--group", "nobody")
        done = run(broker, "delete", *wanted)
        assert done.exit_code == 1
        assert done.stdout == "Deletion of requested consumer groups ('billing') was successful.\n"
        assert done.stderr.splitlines() == [
            "kohort: Group 'nobody' could not be deleted due to: the group does not exist (GROUP_ID_NOT_FOUND)",
            "kohort: Group 'readers' could not be deleted due to: the group is not empty (NON_EMPTY_GROUP)",
        ]
        assert set(broker.groups()) == {"readers"}
        failed = run(broker, "delete", "--group", "readers", "--format", "json")
        assert json.loads(failed.stdout) == [
            {"group": "readers", "status": "Error: the group is not empty (NON_EMPTY_GROUP)"}
        ]


def test_all_groups_are_deleted_only_after_a_yes(broker: Broker) -> None:
    for answer in ("n\n", ""):
        assert run(broker, "delete", "--all-groups", input=answer).exit_code == 1
        assert set(broker.groups()) == {"billing"}
    assert run(broker, "delete", "--all-groups", input="y\n").exit_code == 0
    assert broker.groups() == {}


def test_offsets_are_deleted_by_topic_and_partition(broker: Broker) -> None:
    commit(broker, "billing", {0: 0}, topic="payments")
    done = run(broker, "delete-offsets", "--group", "billing", "--topic", f"{TOPIC}:1", "--topic", "payments")
    assert done.exit_code == 0
    assert rows(done.stdout) == [
        ["TOPIC", "PARTITION", "STATUS"],
        [TOPIC, "1", "Successful"],
        ["payments", "0", "Successful"],
    ]
    assert set(offsets_of(broker, "billing")) == {(TOPIC, 0)}
    assert {row["status"] for row in told(broker, "delete-offsets", "--group", "billing", "--topic", TOPIC)} == {
        "Successful"
    }
    assert offsets_of(broker, "billing") == {}


def test_offsets_that_cannot_be_deleted_are_told_by_row(broker: Broker) -> None:
    commit(broker, "readers", {0: 29})
    with member(broker, "readers", "reader-1"):
        done = run(broker, "delete-offsets", "--group", "readers", "--topic", f"{TOPIC}:0", "--topic", "nix")
        assert done.exit_code == 1
        assert "Error: the group is subscribed to the topic (GROUP_SUBSCRIBED_TO_TOPIC)" in done.stdout
        assert "Not Provided  Error: there is no such topic" in done.stdout
        assert at(broker, "readers") == {0: 29}
    done = run(broker, "delete-offsets", "--group", "nobody", "--topic", f"{TOPIC}:0")
    assert done.exit_code == 1
    assert "Error: the group does not exist (GROUP_ID_NOT_FOUND)" in done.stdout


def test_what_is_exported_is_imported_again(broker: Broker, tmp_path: Path) -> None:
    for name in HOSTILE:
        commit_as_is(broker, name, 2)
    with_json, with_csv = tmp_path / "all.json", tmp_path / "all.csv"
    before = {name: at(broker, name) for name in ("billing", *HOSTILE)}
    assert run(broker, "export", "--all-groups", "--format", "json", "--out", str(with_json)).exit_code == 0
    done = run(broker, "export", "--all-groups", "--out", str(with_csv))
    assert done.exit_code == 1
    assert "left out, for no line of CSV can hold the name: 'two\\nlines'" in done.stderr
    assert "a spreadsheet would take these names for formulas: \"=cmd|' /C calc'!A0\"" in done.stderr
    assert "\x1b" not in done.output
    for path, missing in ((with_csv, {"two\nlines"}), (with_json, set())):
        assert run(broker, "reset", "--all-groups", "--all-topics", "--to-latest", "--execute").exit_code == 0
        assert run(broker, "import", str(path)).exit_code == 0
        assert at(broker)[0] == 30
        assert run(broker, "import", str(path), "--execute").exit_code == 0
        after = {name: at(broker, name) for name in before}
        assert {name for name in before if after[name] != before[name]} == missing


def test_a_group_comes_back_whole_with_its_metadata(broker: Broker, tmp_path: Path) -> None:
    commit(broker, "noted", {0: 4}, "left here")
    noted = offsets_of(broker, "noted")
    path = tmp_path / "noted.json"
    assert run(broker, "export", "--group", "noted", "--format", "json", "--out", str(path)).exit_code == 0
    assert run(broker, "delete", "--group", "noted").exit_code == 0
    assert run(broker, "import", str(path), "--execute").exit_code == 0
    assert offsets_of(broker, "noted") == noted
    assert noted[TOPIC, 0][1].startswith("left here")


def test_csv_is_as_kafkas_tool_has_it(broker: Broker, tmp_path: Path) -> None:
    commit(broker, "other", {0: 1})
    one = run(broker, "export", "--group", "billing")
    assert (one.exit_code, one.stdout, one.stderr) == (0, "orders,0,10\norders,1,3\n", "")
    several = "billing,orders,0,10\nbilling,orders,1,3\nother,orders,0,1\n"
    assert run(broker, "export", "--all-groups").stdout == several
    path = tmp_path / "plan.csv"
    path.write_text("orders,0,11\norders,1,4\n")
    assert reset(broker, "--from-file", str(path)) == {0: 11, 1: 4}
    path.write_text(several)
    assert told(broker, "reset", "--all-groups", "--from-file", str(path), "--execute")
    assert (at(broker), at(broker, "other")) == ({0: 10, 1: 3}, {0: 1})


def test_an_export_of_nothing_and_an_import_of_nobody_are_told(broker: Broker, tmp_path: Path) -> None:
    done = run(broker, "export", "--group", "nobody")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "kohort: group 'nobody' has no offsets\n")
    path = tmp_path / "plan.csv"
    path.write_text("billing,orders,0,1\n")
    done = run(broker, "import", str(path), "--group", "nobody", "--execute")
    assert (done.exit_code, done.stderr) == (1, f"kohort: {path}: has no offsets of 'nobody'\n")
    assert at(broker) == {0: 10, 1: 3}


def test_an_import_of_a_group_with_members_is_refused(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("readers,orders,0,1\n")
    commit(broker, "readers", {0: 29})
    with member(broker, "readers", "reader-1"):
        done = run(broker, "import", str(path), "--execute")
        assert done.exit_code == 1
        assert "Assignments can only be reset if the group 'readers' is inactive" in done.stderr
        assert at(broker, "readers") == {0: 29}


def test_a_file_is_replaced_whole_and_keeps_who_may_read_it(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("what was there before")
    path.chmod(0o600)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    assert run(broker, "export", "--group", "billing", "--out", str(link)).exit_code == 0
    assert link.is_symlink()
    assert path.read_text() == "orders,0,10\norders,1,3\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert {found.name for found in tmp_path.iterdir()} == {"out.csv", "link.csv"}


def test_what_is_no_file_is_written_to_as_it_is(broker: Broker) -> None:
    command = [KOHORT, "groups", "export", "--bootstrap", broker.bootstrap_servers, "--group", "billing"]
    done = subprocess.run([*command, "--out", "/dev/stdout"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "orders,0,10\norders,1,3\n")
