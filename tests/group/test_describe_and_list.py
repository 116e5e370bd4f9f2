"""What people see of groups: DescribeGroups and ListGroups."""

import pytest

from kohort.errors import ErrorCode
from kohort.group.requests import GroupOverview, GroupSummary, MemberSummary
from kohort.group.states import GroupState
from tests.group.context import GROUP, INITIAL_DELAY, OTHER_GROUP, Context

ALL_STATES = frozenset(state.value for state in GroupState)


def listed(c: Context, *states: str) -> list[GroupOverview]:
    error, groups = c.coordinator.handle_list_groups(states)
    assert error is ErrorCode.NONE
    return list(groups)


# Describe


def test_a_group_that_nobody_knows_is_dead() -> None:
    """GC testDescribeGroupInactiveGroup"""
    c = Context()
    assert c.describe() == (ErrorCode.NONE, GroupSummary("Dead", "", "", ()))
    assert c.find() is None


def test_a_stable_group_is_described_with_its_members() -> None:
    """GC testDescribeGroupStableForDynamicMember"""
    c = Context()
    joined = c.dynamic_join(client_id="client", client_host="/127.0.0.1")
    c.sync(GROUP, joined.generation_id, joined.member_id, {joined.member_id: b"assigned"})
    member = MemberSummary(joined.member_id, None, "client", "/127.0.0.1", b"metadata", b"assigned")
    assert c.describe() == (ErrorCode.NONE, GroupSummary("Stable", "consumer", "range", (member,)))


def test_a_static_member_is_described_with_its_instance_id() -> None:
    """GC testDescribeGroupStableForStaticMember"""
    c = Context()
    join = c.join(instance="leader", client_id="client", client_host="/127.0.0.1")
    c.sleep(INITIAL_DELAY + 1)
    joined = join.result
    c.sync(GROUP, joined.generation_id, joined.member_id, {joined.member_id: b""}, instance="leader")
    member = MemberSummary(joined.member_id, "leader", "client", "/127.0.0.1", b"metadata", b"")
    assert c.describe() == (ErrorCode.NONE, GroupSummary("Stable", "consumer", "range", (member,)))


def test_a_group_without_an_assignment_yet_is_described_without_protocol() -> None:
    """GC testDescribeGroupRebalancing"""
    c = Context()
    joined = c.dynamic_join(client_id="client")
    member = MemberSummary(joined.member_id, None, "client", "localhost", b"", b"")
    assert c.describe() == (ErrorCode.NONE, GroupSummary("CompletingRebalance", "consumer", "", (member,)))


def test_during_a_rebalance_the_assignments_of_before_are_not_told() -> None:
    c = Context()
    joined = c.dynamic_join()
    c.sync(GROUP, joined.generation_id, joined.member_id, {joined.member_id: b"assigned"})
    c.join()
    summary = c.describe()[1]
    assert (summary.state, summary.protocol, len(summary.members)) == ("PreparingRebalance", "", 2)
    assert {(member.metadata, member.assignment) for member in summary.members} == {(b"", b"")}


def test_an_empty_group_is_described_with_its_type() -> None:
    c = Context()
    joined = c.stable_group()
    c.leave(GROUP, joined.member_id)
    assert c.describe() == (ErrorCode.NONE, GroupSummary("Empty", "consumer", "", ()))


def test_a_simple_consumers_group_has_no_type() -> None:
    c = Context()
    c.commit({("foo", 0): 1})
    assert c.describe() == (ErrorCode.NONE, GroupSummary("Empty", "", "", ()))
    assert listed(c) == [GroupOverview(GROUP, "", "Empty")]


def test_a_member_without_a_client_id_is_described() -> None:
    c = Context()
    joined = c.stable_group(client_id=None)
    (member,) = c.describe()[1].members
    assert (member.member_id, member.client_id) == (joined.member_id, "")
    assert c.restarted().describe() == c.describe()


# List


def test_a_stable_group_is_listed() -> None:
    """GC testListGroupsIncludesStableGroups"""
    c = Context()
    c.stable_group()
    assert listed(c) == [GroupOverview("groupId", "consumer", "Stable")]


def test_a_group_that_rebalances_is_listed() -> None:
    """GC testListGroupsIncludesRebalancingGroups"""
    c = Context()
    c.dynamic_join()
    assert listed(c) == [GroupOverview("groupId", "consumer", "CompletingRebalance")]


def test_groups_are_listed_by_their_state() -> None:
    """GC testListGroupsWithStates"""
    c = Context()

    def assert_listed_as(state: str) -> None:
        assert listed(c, state) == [GroupOverview("groupId", "consumer", state)]
        assert listed(c, *ALL_STATES - {state}) == []

    joined = c.dynamic_join()
    assert_listed_as("CompletingRebalance")
    c.sync(GROUP, joined.generation_id, joined.member_id, {joined.member_id: b""})
    assert_listed_as("Stable")
    c.leave(GROUP, joined.member_id)
    assert_listed_as("Empty")


@pytest.mark.parametrize("state", ["stable", "STABLE", "", "Stabl", "no state"])
def test_a_state_that_is_none_lists_nothing(state: str) -> None:
    c = Context()
    c.stable_group()
    assert listed(c, state) == []
    assert len(listed(c, state, "Stable")) == 1


def test_groups_of_all_partitions_are_listed() -> None:
    c = Context()
    c.elect(c.partition(OTHER_GROUP))
    c.commit({("foo", 0): 1})
    c.commit({("foo", 0): 1}, OTHER_GROUP)
    assert {group.group_id for group in listed(c)} == {GROUP, OTHER_GROUP}
    c.resign(c.partition(OTHER_GROUP))
    assert {group.group_id for group in listed(c)} == {GROUP}


def test_nothing_is_told_after_the_end() -> None:
    c = Context()
    c.stable_group()
    c.coordinator.shutdown()
    assert c.coordinator.handle_list_groups() == (ErrorCode.COORDINATOR_NOT_AVAILABLE, ())
    assert c.describe() == (ErrorCode.COORDINATOR_NOT_AVAILABLE, GroupSummary(""))
