"""Many groups and members at once: requests in any order, appends that take their time, answers that ask again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import GroupId, JoinGroupRequest, JoinGroupResult, MemberId, SyncGroupResult
from kohort.group.states import GroupState
from tests.group.context import GROUP, PROTOCOLS, Answer, Context
from tests.group.traffic import GOOD_PATH, GOOD_PATH_OF_TRANSACTIONS, MINUTE, Member, Traffic

ROOT = Path(__file__).parents[2]


def members_of(prefix: str, *, groups: int, members: int) -> list[Member]:
    return [Member(f"{prefix}{group}", f"{number}") for group in range(groups) for number in range(members)]


def test_all_members_of_many_groups_do_the_same_at_once() -> None:
    """CC testConcurrentGoodPathSequence

    Python: one task applies requests in order; the order, and when appends are confirmed, is drawn at random
    """
    traffic = Traffic(seed=1)
    members = members_of("group", groups=50, members=25)
    for operation in GOOD_PATH:
        traffic.all_at_once(operation, members)
    groups = traffic.c.manager.current_groups
    assert len(groups) == 50
    assert {(group.state, len(group.offsets)) for group in groups} == {(GroupState.EMPTY, 1)}
    traffic.assert_log_tells_the_same()


def test_markers_are_processed_from_within_the_answers_of_commits() -> None:
    """CC testConcurrentTxnGoodPathSequence

    Python: one task applies requests in order; the commit's answer ends the transaction from inside, at random by a
    commit or an abort
    """
    traffic = Traffic(seed=2)
    members = members_of("group", groups=50, members=25)
    for operation in GOOD_PATH_OF_TRANSACTIONS:
        traffic.all_at_once(operation, members)
    groups = traffic.c.manager.current_groups
    assert {group.state for group in groups} == {GroupState.EMPTY}
    assert not any(group.offsets.producers for group in groups)
    traffic.assert_log_tells_the_same()


def random_rounds(traffic: Traffic, rounds: int, *, groups: int, members: int) -> None:
    """Anything in any order; then new groups whose members do the right things must be answered well."""
    for number in range(rounds):
        confused = members_of(f"random{number}-", groups=groups, members=members)
        for _ in range(len(GOOD_PATH_OF_TRANSACTIONS) + 1):
            for member in traffic.random.sample(confused, len(confused)):
                traffic.random.choice(GOOD_PATH_OF_TRANSACTIONS)(traffic, member, False)
                traffic.confirm_some()
        orderly = members_of(f"ordered{number}-", groups=groups, members=members)
        for operation in GOOD_PATH_OF_TRANSACTIONS:
            traffic.all_at_once(operation, orderly)


def test_confusion_in_some_groups_does_not_reach_others() -> None:
    """CC testConcurrentRandomSequence

    Python: one task applies requests in order; the order, and when appends are confirmed, is drawn at random
    """
    traffic = Traffic(seed=3)
    random_rounds(traffic, 11, groups=10, members=10)
    traffic.assert_log_tells_the_same()


# The same seed, the same life


def digest(seed: int) -> str:
    """Of a life with traffic, a restart and an expiry."""
    traffic = Traffic(seed)
    random_rounds(traffic, 2, groups=10, members=5)
    traffic.c = traffic.restarted()
    overviews = traffic.c.coordinator.handle_list_groups()
    traffic.trace.append(str(overviews))
    traffic.c.clock.advance(60 * MINUTE)
    traffic.c.topic.release()
    traffic.c.settle(MINUTE)
    traffic.c.coordinator.cleanup_group_metadata()
    traffic.c.settle()
    assert not traffic.c.manager.current_groups
    return traffic.digest()


def test_the_same_seed_gives_the_same_trace() -> None:
    assert digest(5) == digest(5)
    assert digest(5) != digest(6)


def test_the_same_seed_gives_the_same_trace_in_any_process() -> None:
    command = "from tests.group.test_concurrency import digest; import sys; sys.stdout.write(digest(5))"
    told = [
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1] == digest(5)


# Answers that ask again


def join_and_then(c: Context, client: str, then: object, member_id: str = "") -> None:
    request = JoinGroupRequest(
        GroupId(GROUP), MemberId(member_id), None, client, "host", MINUTE, MINUTE, "consumer", PROTOCOLS
    )
    c.coordinator.handle_join_group(request, then)


@pytest.mark.parametrize("members", [10, 2_000])
def test_a_group_of_any_size_may_sync_from_within_the_answers_of_its_joins(members: int) -> None:
    c = Context(group_max_size=10_000)
    syncs: list[Answer[SyncGroupResult]] = []

    def sync(joined: JoinGroupResult) -> None:
        assignment = {member.member_id: member.member_id.encode() for member in joined.members}
        syncs.append(c.sync(GROUP, joined.generation_id, joined.member_id, assignment))

    for number in range(members):
        join_and_then(c, f"client-{number}", sync)
    c.sleep(51)
    c.sleep(MINUTE)
    assert len(syncs) == members
    assert {answer.result.error for answer in syncs} == {ErrorCode.NONE}
    assert len({answer.result.assignment for answer in syncs}) == members
    assert c.state() == "Stable"


def test_members_that_leave_from_within_their_answers_leave_an_empty_group() -> None:
    c = Context(group_max_size=10_000)
    left: list[ErrorCode] = []
    for number in range(500):
        join_and_then(c, f"client-{number}", lambda joined: left.append(c.leave(GROUP, joined.member_id).error))
    c.sleep(51)
    c.sleep(MINUTE)
    c.sleep(MINUTE)
    assert left == [ErrorCode.NONE] * 500
    assert c.state() == "Empty"
    assert c.restarted().state() == "Empty"
