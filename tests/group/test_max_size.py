"""`group.max.size`: the group never becomes larger, and whoever is one too many is told so."""

import random

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import JoinGroupResult, MemberId
from tests.group.context import GROUP, INITIAL_DELAY, REBALANCE_TIMEOUT, Answer, Context

MAX_SIZE = 4
FULL = ErrorCode.GROUP_MAX_SIZE_REACHED
TURNED_AWAY = JoinGroupResult(FULL, MemberId(""))
FOUR_OF_FIVE = [ErrorCode.NONE] * MAX_SIZE + [FULL]

Joins = list[Answer[JoinGroupResult]]


def errors_of(joins: Joins) -> list[ErrorCode]:
    return [join.result.error for join in joins]


def finish_first_rebalance(c: Context) -> None:
    """The initial delay passes, and again because others came meanwhile."""
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)


def ids_for(c: Context, number: int) -> list[MemberId]:
    joins = [c.join(require_known_id=True) for _ in range(number)]
    assert set(errors_of(joins)) == {ErrorCode.MEMBER_ID_REQUIRED}
    return [join.result.member_id for join in joins]


def test_a_full_group_takes_nobody_else() -> None:
    """GC testJoinGroupShouldReceiveErrorIfGroupOverMaxSize"""
    c = Context()
    joins: Joins = []
    for number in range(MAX_SIZE):
        joins.append(c.join(rebalance=2 * INITIAL_DELAY))
        if number:
            c.sleep(INITIAL_DELAY)
    c.sleep(INITIAL_DELAY + 1)
    assert errors_of(joins) == [ErrorCode.NONE] * MAX_SIZE
    assert c.join(rebalance=2 * INITIAL_DELAY).result == TURNED_AWAY
    assert list(c.group().members) == [join.result.member_id for join in joins]


def test_of_five_who_come_with_their_ids_four_are_let_in() -> None:
    """GC testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember"""
    c = Context()
    ids = ids_for(c, MAX_SIZE + 1)
    joins = [c.join(member=member, require_known_id=True) for member in ids]
    finish_first_rebalance(c)
    assert errors_of(joins) == FOUR_OF_FIVE
    assert c.state() == "CompletingRebalance"
    assert errors_of([c.join(member=member, require_known_id=True) for member in ids]) == FOUR_OF_FIVE
    assert list(c.group().members) == ids[:MAX_SIZE]


def test_of_five_who_come_without_ids_four_are_let_in() -> None:
    """GC testDynamicMembersJoinGroupWithMaxSize"""
    c = Context()
    joins = [c.join() for _ in range(MAX_SIZE + 1)]
    finish_first_rebalance(c)
    assert errors_of(joins) == FOUR_OF_FIVE
    assert c.state() == "CompletingRebalance"
    assert errors_of([c.join(member=join.result.member_id) for join in joins]) == FOUR_OF_FIVE


def test_of_five_static_members_four_are_let_in() -> None:
    """GC testStaticMembersJoinGroupWithMaxSize"""
    c = Context()
    instances = [f"instance-id-{number}" for number in range(MAX_SIZE + 1)]
    joins = [c.join(instance=instance) for instance in instances]
    finish_first_rebalance(c)
    assert errors_of(joins) == FOUR_OF_FIVE
    ids = [join.result.member_id for join in joins]
    assert c.state() == "CompletingRebalance"
    again = [c.join(member=member, instance=instance) for member, instance in zip(ids, instances, strict=True)]
    assert errors_of(again) == FOUR_OF_FIVE
    assert list(c.group().static_members) == instances[:MAX_SIZE]


def test_whoever_waits_in_a_rebalance_may_join_again() -> None:
    """GC testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing"""
    c = Context()
    ids = ids_for(c, MAX_SIZE + 1)
    first = [c.join(member=member, require_known_id=True) for member in ids]
    second = [c.join(member=member, require_known_id=True) for member in ids]
    assert errors_of(first) == [ErrorCode.REBALANCE_IN_PROGRESS] * MAX_SIZE + [FULL]
    finish_first_rebalance(c)
    assert errors_of(second) == FOUR_OF_FIVE


def test_a_group_that_is_too_large_sends_away_the_last_who_join_again() -> None:
    """GC testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize"""
    before = Context(group_max_size=MAX_SIZE + 2)
    session = before.config.group_max_session_timeout_ms
    joins = [before.join(session=session) for _ in range(MAX_SIZE + 2)]
    finish_first_rebalance(before)
    ids = [join.result.member_id for join in joins]
    before.sync(GROUP, 1, ids[0])
    assert before.state() == "Stable"
    c = before.restarted()
    assert c.state() == "PreparingRebalance"
    assert list(c.group().members) == ids
    again = [c.join(member=member, session=session) for member in ids]
    assert errors_of(again) == [ErrorCode.NONE] * MAX_SIZE + [FULL] * 2
    assert {join.result.generation_id for join in again[:MAX_SIZE]} == {2}
    for member in ids[:MAX_SIZE]:
        c.sync(GROUP, 2, member)
    c.sleep(REBALANCE_TIMEOUT + 1)
    assert list(c.group().members) == ids[:MAX_SIZE]


def join_interleaved(c: Context, order: random.Random, kinds: list[str]) -> list[ErrorCode]:
    """Each member takes its steps one after the other, but who takes the next one is left to chance."""
    patient = {"session": 60_000, "rebalance": 60_000}
    joins: list[Answer[JoinGroupResult] | None] = [None] * len(kinds)
    turns = [member for member, kind in enumerate(kinds) for _ in range(2 if kind == "known id" else 1)]
    order.shuffle(turns)
    for member in turns:
        kind, before = kinds[member], joins[member]
        if before is None:
            instance = f"instance-{member}" if kind == "static" else None
            joins[member] = c.join(instance=instance, require_known_id=kind == "known id", **patient)
        elif before.result.error is ErrorCode.MEMBER_ID_REQUIRED:
            joins[member] = c.join(member=before.result.member_id, require_known_id=True, **patient)
        if order.random() < 0.2:
            c.sleep(order.randrange(2 * INITIAL_DELAY))
    c.sleep(INITIAL_DELAY + 1)
    return [join.result.error for join in joins if join is not None]


@pytest.mark.parametrize("kinds", [["at once"], ["known id"], ["static"], ["at once", "known id", "static"]])
@pytest.mark.parametrize("seed", range(5))
def test_of_25_who_come_in_any_order_one_is_let_in(seed: int, kinds: list[str]) -> None:
    """CC testConcurrentJoinGroupEnforceGroupMaxSize

    Python: one task applies requests in order, so 25 joins are interleaved, in several orders and with time passing
    between them, instead of sent by threads.
    """
    c = Context(group_max_size=1)
    order = random.Random(seed)
    errors = join_interleaved(c, order, [order.choice(kinds) for _ in range(25)])
    assert errors.count(ErrorCode.NONE) == 1
    assert errors.count(FULL) == 24
    assert len(c.group().members) == 1
    assert c.group().pending_members == {}


def test_whoever_is_turned_away_does_not_keep_the_others_waiting() -> None:
    """All others have joined, so the rebalance is over."""
    c = Context()
    first = c.stable_group()
    ids = ids_for(c, MAX_SIZE)
    joins = [c.join(member=member, require_known_id=True) for member in (*ids[:3], first.member_id)]
    assert not any(join.is_done for join in joins)
    assert c.join(member=ids[3], require_known_id=True).result == TURNED_AWAY
    assert errors_of(joins) == [ErrorCode.NONE] * MAX_SIZE
    assert c.group().pending_members == {}


def test_a_full_group_has_room_again_when_somebody_leaves() -> None:
    c = Context()
    joins = [c.join() for _ in range(MAX_SIZE)]
    finish_first_rebalance(c)
    assert c.join().result == TURNED_AWAY
    c.leave(GROUP, joins[0].result.member_id)
    newcomer = c.join()
    again = [c.join(member=join.result.member_id) for join in joins[1:]]
    assert errors_of([newcomer, *again]) == [ErrorCode.NONE] * MAX_SIZE


def test_a_static_member_that_is_turned_away_without_its_id_can_still_come_with_it() -> None:
    """In a full group there is no room for an unknown id, and that must not cost the member its place.

    Repaired: Kafka 2.6.3 forgets whom the instance id belongs to when it turns such a member away; later releases
    do not (Kafka's pull request 9952).
    """
    c = Context()
    joins = [c.join(instance=f"instance-{number}") for number in range(MAX_SIZE)]
    finish_first_rebalance(c)
    mine = joins[1].result
    assert c.join(instance="instance-1").result == TURNED_AWAY
    assert c.join(member=mine.member_id, instance="instance-1").result == mine
