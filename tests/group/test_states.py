"""The life of a group: which state may follow which."""

import itertools

import pytest

from kohort.clock import VirtualClock
from kohort.errors import IllegalState
from kohort.group.group_metadata import GroupMetadata
from kohort.group.requests import GroupId
from kohort.group.states import GroupState

EMPTY, DEAD, STABLE = GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

WAYS = {
    EMPTY: [],
    PREPARING: [PREPARING],
    COMPLETING: [PREPARING, COMPLETING],
    STABLE: [PREPARING, COMPLETING, STABLE],
    DEAD: [PREPARING, DEAD],
}
"""How a new group gets into each state."""


def group_in(state: GroupState) -> GroupMetadata:
    group = GroupMetadata(GroupId("groupId"), VirtualClock())
    for step in WAYS[state]:
        group.transition_to(step)
    assert group.state is state
    return group


def assert_allowed(before: GroupState, after: GroupState) -> None:
    group = group_in(before)
    group.transition_to(after)
    assert group.state is after
    assert [state for state in GroupState if group.is_(state)] == [after]


def assert_refused(before: GroupState, after: GroupState) -> None:
    group = group_in(before)
    with pytest.raises(IllegalState, match=f"groupId cannot go from {before} to {after}"):
        group.transition_to(after)
    assert group.state is before


def test_a_group_at_rest_can_rebalance() -> None:
    """GM testCanRebalanceWhenStable"""
    assert group_in(EMPTY).can_rebalance
    assert group_in(STABLE).can_rebalance


def test_a_group_that_waits_for_its_assignment_can_rebalance() -> None:
    """GM testCanRebalanceWhenCompletingRebalance"""
    assert group_in(COMPLETING).can_rebalance


def test_a_group_that_rebalances_cannot_begin_again() -> None:
    """GM testCannotRebalanceWhenPreparingRebalance"""
    assert not group_in(PREPARING).can_rebalance


def test_a_dead_group_cannot_rebalance() -> None:
    """GM testCannotRebalanceWhenDead"""
    group = group_in(PREPARING)
    group.transition_to(EMPTY)
    group.transition_to(DEAD)
    assert not group.can_rebalance


def test_a_group_at_rest_may_begin_to_rebalance() -> None:
    """GM testStableToPreparingRebalanceTransition"""
    assert_allowed(EMPTY, PREPARING)
    assert_allowed(STABLE, PREPARING)


def test_a_group_at_rest_may_die() -> None:
    """GM testStableToDeadTransition"""
    assert_allowed(EMPTY, DEAD)
    assert_allowed(STABLE, DEAD)


def test_a_group_that_waits_for_its_assignment_may_rebalance_anew() -> None:
    """GM testAwaitingRebalanceToPreparingRebalanceTransition"""
    assert_allowed(COMPLETING, PREPARING)


def test_a_group_that_rebalances_may_die() -> None:
    """GM testPreparingRebalanceToDeadTransition"""
    assert_allowed(PREPARING, DEAD)


def test_a_group_that_rebalances_may_end_up_empty() -> None:
    """GM testPreparingRebalanceToEmptyTransition"""
    assert_allowed(PREPARING, EMPTY)


def test_a_group_that_became_empty_may_die() -> None:
    """GM testEmptyToDeadTransition"""
    group = group_in(PREPARING)
    group.transition_to(EMPTY)
    group.transition_to(DEAD)
    assert group.state is DEAD


def test_a_group_with_an_assignment_is_stable() -> None:
    """GM testAwaitingRebalanceToStableTransition"""
    assert_allowed(COMPLETING, STABLE)


def test_an_empty_group_cannot_be_stable() -> None:
    """GM testEmptyToStableIllegalTransition"""
    assert_refused(EMPTY, STABLE)


def test_a_stable_group_cannot_become_stable() -> None:
    """GM testStableToStableIllegalTransition"""
    assert_refused(STABLE, STABLE)


def test_an_empty_group_cannot_wait_for_an_assignment() -> None:
    """GM testEmptyToAwaitingRebalanceIllegalTransition"""
    assert_refused(EMPTY, COMPLETING)


def test_a_rebalance_cannot_begin_twice() -> None:
    """GM testPreparingRebalanceToPreparingRebalanceIllegalTransition"""
    assert_refused(PREPARING, PREPARING)


def test_a_rebalance_cannot_skip_the_assignment() -> None:
    """GM testPreparingRebalanceToStableIllegalTransition"""
    assert_refused(PREPARING, STABLE)


def test_a_group_cannot_begin_to_wait_for_its_assignment_twice() -> None:
    """GM testAwaitingRebalanceToAwaitingRebalanceIllegalTransition"""
    assert_refused(COMPLETING, COMPLETING)


def test_a_dead_group_may_be_declared_dead_again() -> None:
    """Kafka's test of it is named after the opposite, and was never run."""
    assert_allowed(DEAD, DEAD)


def test_a_dead_group_cannot_be_stable() -> None:
    """GM testDeadToStableIllegalTransition"""
    assert_refused(DEAD, STABLE)


def test_a_dead_group_cannot_begin_a_rebalance() -> None:
    """GM testDeadToPreparingRebalanceIllegalTransition"""
    assert_refused(DEAD, PREPARING)


def test_a_dead_group_cannot_wait_for_an_assignment() -> None:
    """GM testDeadToAwaitingRebalanceIllegalTransition"""
    assert_refused(DEAD, COMPLETING)


def test_nothing_but_these_eleven_transitions_is_allowed() -> None:
    allowed = {
        *((state, DEAD) for state in GroupState),
        (EMPTY, PREPARING),
        (STABLE, PREPARING),
        (COMPLETING, PREPARING),
        (PREPARING, COMPLETING),
        (PREPARING, EMPTY),
        (COMPLETING, STABLE),
    }
    for before, after in itertools.product(GroupState, GroupState):
        if (before, after) in allowed:
            assert_allowed(before, after)
        else:
            assert_refused(before, after)


def test_a_group_remembers_the_time_of_day_at_which_it_came_into_its_state() -> None:
    clock = VirtualClock(1_000)
    group = GroupMetadata(GroupId("groupId"), clock)
    clock.advance(5)
    group.transition_to(PREPARING)
    assert group.current_state_timestamp == 1_005
    clock.jump(-900)
    with pytest.raises(IllegalState):
        group.transition_to(STABLE)
    assert group.current_state_timestamp == 1_005
    group.transition_to(COMPLETING)
    assert group.current_state_timestamp == 105
