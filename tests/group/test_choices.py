"""Where Apache Kafka 2.6.3 and 4.1.0 answer differently, and which of the two we follow."""

from kohort.errors import ErrorCode
from kohort.group.requests import MemberId
from tests.group.context import GROUP, INITIAL_DELAY, Context, only


def test_assignments_are_not_shown_during_a_rebalance() -> None:
    """Chosen: 2.6.3, DescribeGroups shows no assignments during a rebalance (4.1.0: those of the generation before)."""
    c = Context()
    member = c.dynamic_join().member_id
    c.sync(GROUP, 1, member, {member: b"assigned"})
    assert [shown.assignment for shown in c.describe()[1].members] == [b"assigned"]
    c.join()
    _, summary = c.describe()
    assert summary.state == "PreparingRebalance"
    assert [(shown.metadata, shown.assignment) for shown in summary.members] == [(b"", b""), (b"", b"")]


def test_a_pending_id_that_leaves_disturbs_nobody() -> None:
    """Chosen: 2.6.3, a pending id that leaves a Stable group disturbs nobody (4.1.0: it starts a rebalance)."""
    c = Context()
    c.stable_group()
    pending = c.join(require_known_id=True).result.member_id
    assert c.leave(GROUP, pending).members[0].error is ErrorCode.NONE
    assert c.state() == "Stable"
    assert not c.group().pending_members


def test_an_instance_id_that_nobody_knows_is_passed_over() -> None:
    """Chosen: 2.6.3, a valid member id with an unknown instance id is accepted, except in a join (4.1.0:
    UNKNOWN_MEMBER_ID)."""
    c = Context()
    member = c.stable_group().member_id
    assert c.sync(GROUP, 1, member, instance="stranger").result.error is ErrorCode.NONE
    assert c.heartbeat(GROUP, member, 1, instance="stranger") is ErrorCode.NONE
    assert only(c.commit({("t", 0): 1}, GROUP, member, 1, instance="stranger").result) is ErrorCode.NONE
    assert only(c.txn_commit(1, {("t", 0): 1}, GROUP, member, 1, instance="stranger").result) is ErrorCode.NONE
    assert c.join(GROUP, member, instance="stranger").result.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert c.leave(GROUP, (member, "stranger")).members[0].error is ErrorCode.NONE
    assert c.state() == "Empty"


def test_states_are_filtered_by_their_exact_names() -> None:
    """Chosen: 2.6.3, the state filter of ListGroups is case-sensitive (4.1.0: it is not)."""
    c = Context()
    c.stable_group()
    assert [group.group_id for group in c.coordinator.handle_list_groups({"Stable"})[1]] == [GROUP]
    assert not c.coordinator.handle_list_groups({"stable"})[1]


def test_an_empty_group_goes_with_its_last_offset() -> None:
    """Chosen: 2.6.3, a group without members is gone when its last offset is deleted (4.1.0: it stays Empty)."""
    c = Context()
    c.commit({("t", 0): 1})
    assert c.delete_offsets([("t", 0)]).result == (ErrorCode.NONE, {("t", 0): ErrorCode.NONE})
    assert c.describe()[1].state == "Dead"


def test_a_transactional_commit_checks_only_what_it_is_given() -> None:
    """Chosen: 2.6.3, TxnOffsetCommit with a member and no generation, or a generation and no member, is taken (4.1.0:
    ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID); nor is it asked whether the transaction knows of the group (4.1.0, KIP-890:
    INVALID_TXN_STATE)."""
    c = Context()
    member = c.stable_group().member_id
    assert only(c.txn_commit(1, {("t", 0): 1}, GROUP, member, -1).result) is ErrorCode.NONE
    assert only(c.txn_commit(1, {("t", 0): 1}, GROUP, "", 1).result) is ErrorCode.NONE


def test_a_refused_transactional_commit_leaves_an_empty_group_behind() -> None:
    """Chosen: 2.6.3, TxnOffsetCommit of a member of an unknown group is UNKNOWN_MEMBER_ID and leaves an Empty group
    (4.1.0: ILLEGAL_GENERATION, no group)."""
    c = Context()
    assert only(c.txn_commit(1, {("t", 0): 1}, GROUP, "stranger", 3).result) is ErrorCode.UNKNOWN_MEMBER_ID
    assert c.state() == "Empty"
    c.coordinator.cleanup_group_metadata()
    assert c.find() is None


def test_a_client_without_an_id_gets_a_bare_member_id() -> None:
    """Chosen: 4.1.0, a client without a client id gets a bare UUID as member id and is described like any other (2.6.3:
    "null-" before it, and DescribeGroups fails)."""
    c = Context()
    member = c.stable_group(client_id=None).member_id
    assert member == "00000001-0000"
    error, summary = c.describe()
    assert error is ErrorCode.NONE
    assert [(shown.member_id, shown.client_id) for shown in summary.members] == [(member, "")]
    assert c.restarted().group().members[MemberId(member)].client_id == ""


def test_when_one_too_many_is_turned_away_the_others_go_on() -> None:
    """Chosen: 2.6.3, those who wait are answered as soon as the one too many is turned away (4.1.0: only after the
    rebalance timeout)."""
    c = Context()
    ids = [c.join(require_known_id=True).result.member_id for _ in range(5)]
    for member in ids[:4]:
        c.join(member=member)
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    c.join(member=ids[0], protocols=(("range", b"changed"),))
    waiting = [c.join(member=member) for member in ids[1:4]]
    assert not any(answer.is_done for answer in waiting)
    assert c.join(member=ids[4]).result.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [answer.result.error for answer in waiting] == [ErrorCode.NONE] * 3


def test_metadata_that_nobody_can_read_is_taken_as_it_is() -> None:
    """Chosen: 2.6.3, a join whose metadata is no subscription is accepted (4.1.0: never answered)."""
    c = Context()
    joined = c.dynamic_join(protocols=(("range", b"\xff"),))
    assert joined.error is ErrorCode.NONE
    assert joined.members[0].metadata == b"\xff"
    assert c.group().subscribed_topics is None
