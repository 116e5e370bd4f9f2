"""Why a group rebalanced, for how long, and who and what moved. All cases are one log, read once."""

import re

import pytest
from pyspark.sql import SparkSession

from kohort.spark.schema import columns_of
from kohort.spark.tables.rebalances import rebalances
from tests.spark.tables.data import GroupLog, M, Row, at, rows_of

HOSTILE = "<b>=1+1\x00,'\"; DROP TABLE\n" + "x" * 5_000


def _cases() -> GroupLog:
    log = GroupLog()
    a, b, c = M("a", ["t-0", "t-1"]), M("b", ["t-2"]), M("c")
    log.write(1, a, group="first", seconds=5, joined=3)
    # A 4.x coordinator writes an empty record when the first member asks to join.
    log.write(0, group="created", protocol_type="", seconds=1)
    log.write(1, a, group="created", seconds=5, joined=4)
    log.write(7, a, group="seen", seconds=5, joined=4)
    log.write(1, a, group="joined")
    log.write(2, M("a", ["t-0"]), M("b", ["t-1", "t-2"]), group="joined", seconds=100, joined=99)
    log.write(4, a, b, group="left")
    log.write(5, M("b", ["t-0", "t-1", "t-2"]), group="left", seconds=10, joined=9.5)
    log.write(4, M("a", client="x"), b, group="changed")
    log.write(5, b, c, group="changed")
    log.write(4, M("a", client="x", host="/1"), M("b", client="x", host="/2"), M("c"), group="restarted")
    log.write(5, M("d", client="x", host="/2"), M("e", client="x", host="/1"), M("c"), group="restarted")
    log.write(3, M("i-1", ["t-0"], instance="i"), b, group="static")
    log.write(3, M("i-2", ["t-0"], instance="i"), b, group="static", leader="i-2")
    log.write(3, M("i-2", ["t-0"], instance="i"), b, group="static", leader="i-2")
    log.write(4, M("i-3", ["t-0"], instance="i"), b, c, group="static")
    log.write(1, a, group="emptied")
    log.write(2, group="emptied", seconds=60, joined=60)
    log.write(2, group="emptied", seconds=61, joined=60)
    log.write(4, group="emptied", seconds=70, joined=70)
    log.remove(group="emptied", seconds=80)
    log.remove(group="emptied", seconds=90)
    log.write(1, b, group="emptied", seconds=95)
    log.remove(group="gone")
    log.write(4, a, b, group="subscription")
    log.write(5, M("a", ["t-0", "t-1"], topics=("t", "u")), b, group="subscription")
    log.write(4, a, b, group="protocol")
    log.write(5, a, b, group="protocol", protocol="sticky")
    log.write(4, a, b, group="partitions")
    log.write(5, M("a", ["t-0"]), M("b", ["t-2", "t-3", "u-0"]), group="partitions")
    log.write(4, a, b, group="same")
    log.write(5, M("b", ["t-2"]), M("a", ["t-0", "t-1"], topics=("t", "t")), group="same")
    log.write(9, a, b, group="same")
    log.write(9, a, b, group="anew")
    log.write(1, c, group="anew")
    log.write(1, M("w", topics=None), group="connect", protocol_type="connect")
    log.write(2, M("w", topics=None), M("v", topics=None), group="connect", protocol_type="connect")
    log.write(1, M(HOSTILE, [f"{HOSTILE}-0"], instance=HOSTILE, client=HOSTILE), group=HOSTILE, protocol=HOSTILE)
    log.write(2, M("x", [f"{HOSTILE}-0"], instance=HOSTILE), group=HOSTILE, protocol="p")
    # Two members own the same partition: some assignors are wrong.
    log.write(1, M("a", ["t-0"]), M("b", ["t-0", "t-1"]), group="shared")
    log.write(2, M("a", ["t-0"]), M("b", ["t-1"]), group="shared")
    log.write(1, M("a", ["t-0", "t-1"]), group="cooperative")
    log.write(2, M("a", ["t-0"]), M("b"), group="cooperative")
    log.write(3, M("a", ["t-0"]), M("b", ["t-1"]), group="cooperative")
    log.write(4, M("a", ["t-0"]), M("b", ["t-1", "t-2"]), group="cooperative")
    log.write(1, M("a", ["t-0"]), group="converted")
    log.remove(group="converted")
    log.write(-2_147_483_648, M("a"), group="extreme")
    log.write(2_147_483_647, M("a"), group="extreme")
    # The same group in another partition of the offsets topic has nothing to do with it.
    log.write(1, M("z"), group="joined", partition=3)
    return log


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows_of(rebalances(*_cases().tables(spark)), "partition", "offset"):
        groups.setdefault(row["group"], []).append(row)
    return groups


@pytest.mark.parametrize(
    ("group", "causes"),
    [
        ("first", ["first_generation"]),
        ("created", ["group_created", "first_generation"]),
        ("seen", ["first_seen"]),
        ("joined", ["first_generation", "member_joined", "first_generation"]),
        ("left", ["first_seen", "member_left"]),
        ("changed", ["first_seen", "members_changed"]),
        ("restarted", ["first_seen", "members_restarted"]),
        ("static", ["first_seen", "static_member_replaced", "rewritten", "member_joined"]),
        (
            "emptied",
            ["first_generation", "group_emptied", "rewritten", "group_emptied", "group_removed", "first_generation"],
        ),
        ("gone", ["group_removed"]),
        ("subscription", ["first_seen", "subscription_changed"]),
        ("protocol", ["first_seen", "protocol_changed"]),
        ("partitions", ["first_seen", "partitions_changed"]),
        ("same", ["first_seen", "same_members", "same_members"]),
        ("anew", ["first_seen", "first_generation"]),
        ("connect", ["first_generation", "member_joined"]),
        ("cooperative", ["first_generation", "member_joined", "cooperative_handover", "partitions_changed"]),
        ("converted", ["first_generation", "group_converted"]),
        ("extreme", ["first_generation", "same_members"]),
        (HOSTILE, ["first_generation", "static_member_replaced"]),
    ],
)
def test_each_record_has_the_cause_that_the_log_shows(
    told: dict[str, list[Row]], group: str, causes: list[str]
) -> None:
    assert [row["cause"] for row in told[group]] == causes


def test_the_columns_comment_names_every_cause(told: dict[str, list[Row]]) -> None:
    (comment,) = (column.comment for column in columns_of("rebalances") if column.name == "cause")
    named = set(re.findall("[a-z]+_[a-z_]+", comment))
    assert {row["cause"] for rows in told.values() for row in rows} == {*named, "rewritten"}


def test_members_are_told_by_who_came_who_went_and_who_stayed(told: dict[str, list[Row]]) -> None:
    changed, restarted = told["changed"][1], told["restarted"][1]
    assert (changed["members_joined"], changed["members_left"], changed["members_kept"]) == (["c"], ["a"], ["b"])
    assert (changed["joined_count"], changed["left_count"], changed["kept_count"]) == (1, 1, 1)
    assert (restarted["members_joined"], restarted["members_left"]) == (["d", "e"], ["a", "b"])
    assert told["first"][0]["members_joined"] == ["a"]


def test_a_group_that_is_emptied_or_removed_has_lost_all_that_it_had(told: dict[str, list[Row]]) -> None:
    _, emptied, rewritten, _, removed, again = told["emptied"]
    assert (emptied["members_left"], emptied["partitions_revoked"], emptied["partitions_total"]) == (["a"], 2, 0)
    assert (rewritten["members_left"], rewritten["partitions_revoked"]) == ([], 0)
    assert (removed["from_generation"], removed["to_generation"]) == (4, None)
    assert (again["from_generation"], again["to_generation"], again["members_joined"]) == (None, 1, ["b"])


def test_a_tombstone_after_a_tombstone_says_nothing_new(told: dict[str, list[Row]]) -> None:
    assert [row["cause"] for row in told["emptied"]].count("group_removed") == 1


def test_a_static_member_that_came_back_is_the_same_one_and_keeps_its_partitions(told: dict[str, list[Row]]) -> None:
    _, replaced, _, joined = told["static"]
    assert (replaced["members_replaced"], replaced["members_kept"]) == (["i-2"], ["b", "i-2"])
    assert (replaced["from_generation"], replaced["to_generation"]) == (3, 3)
    assert (replaced["partitions_moved"], replaced["leader_changed"]) == (0, False)
    assert replaced["joined_at"] is None
    assert (joined["replaced_count"], joined["members_joined"], joined["partitions_moved"]) == (1, ["c"], 0)


@pytest.mark.parametrize(
    ("group", "row", "total", "moved", "assigned", "revoked"),
    [
        ("first", 0, 2, 0, 2, 0),
        ("joined", 1, 3, 1, 1, 0),
        ("left", 1, 3, 2, 0, 0),
        ("partitions", 1, 4, 0, 2, 1),
        ("same", 1, 3, 0, 0, 0),
        ("anew", 1, 0, 0, 0, 0),
        ("shared", 1, 2, 0, 0, 0),
        ("cooperative", 1, 1, 0, 0, 1),
        ("cooperative", 2, 2, 1, 0, 0),
        ("cooperative", 3, 3, 0, 1, 0),
        ("converted", 1, 0, 0, 0, 1),
        ("connect", 1, None, None, None, None),
    ],
)
def test_partitions_are_counted_by_what_became_of_their_owner(
    told: dict[str, list[Row]],
    group: str,
    row: int,
    total: int | None,
    moved: int | None,
    assigned: int | None,
    revoked: int | None,
) -> None:
    found = told[group][row]
    names = ("partitions_total", "partitions_moved", "partitions_assigned", "partitions_revoked")
    assert tuple(found[name] for name in names) == (total, moved, assigned, revoked)


def test_the_leader_has_changed_if_there_are_two_and_they_differ(told: dict[str, list[Row]]) -> None:
    assert told["left"][1]["leader_changed"]
    assert told["same"][1]["leader_changed"]
    assert not told["joined"][1]["leader_changed"]
    assert not told["emptied"][1]["leader_changed"]
    assert not told["first"][0]["leader_changed"]


def test_the_start_is_known_only_where_the_coordinator_wrote_it(told: dict[str, list[Row]]) -> None:
    created = told["created"][1]
    assert (created["started_at"], created["joined_at"], created["completed_at"]) == (at(1), at(4), at(5))
    assert (created["sync_seconds"], created["duration_seconds"]) == (1.0, 4.0)
    assert [row["started_at"] for row in told["joined"]] == [None, None, None]


def test_a_rebalance_began_after_the_record_before_and_lasted_no_longer_than_the_timeout(
    told: dict[str, list[Row]],
) -> None:
    joined, left = told["joined"][1], told["left"][1]
    assert (joined["started_after"], joined["longest_seconds"], joined["sync_seconds"]) == (at(39), 61.0, 1.0)
    assert (left["started_after"], left["longest_seconds"], left["sync_seconds"]) == (at(0), 10.0, 0.5)
    assert told["first"][0]["started_after"] == at(3 - 60)


def test_generations_without_a_record_are_counted_and_told(told: dict[str, list[Row]]) -> None:
    assert [row["generations_skipped"] for row in told["same"]] == [0, 0, 3]
    assert told["extreme"][1]["generations_skipped"] == (1 << 32) - 2
    assert told["same"][2]["cause_detail"].endswith("; 3 generations before it left no record")


def test_the_cause_is_told_as_a_sentence(told: dict[str, list[Row]]) -> None:
    assert told["changed"][1]["cause_detail"] == "1 member joined, 1 member left, 1 stayed"
    assert told["emptied"][1]["cause_detail"] == "the last member left or expired"
    assert told["left"][1]["cause_detail"] == "1 member left or expired, 1 stayed"
    assert told["partitions"][1]["cause_detail"] == (
        "the same members, but 2 partitions came and 1 partition went"
        ": a topic was created, grew or was deleted, or the assignor takes several steps"
    )


def test_a_group_of_the_same_name_in_another_partition_is_another_group(told: dict[str, list[Row]]) -> None:
    assert [(row["partition"], row["members_joined"]) for row in told["joined"]][-1] == (3, ["z"])
