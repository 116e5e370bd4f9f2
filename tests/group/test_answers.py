"""Whoever is answered may ask again at once, from within the answer: the group is whole by then, and nobody is lost."""

from collections.abc import Callable
from typing import Any, TypeVar

from kohort.errors import ErrorCode
from kohort.group.requests import (
    GenerationId,
    GroupId,
    JoinGroupRequest,
    JoinGroupResult,
    MemberId,
    SyncGroupRequest,
    SyncGroupResult,
)
from tests.group.context import (
    GROUP,
    INITIAL_DELAY,
    PROTOCOL_SUPERSET,
    PROTOCOLS,
    REBALANCE_TIMEOUT,
    SESSION_TIMEOUT,
    Answer,
    Context,
)

T = TypeVar("T")
Ask = Callable[[T], Any]


class ThenAsk(Answer[T]):
    """An answer that is followed by another question; `asked` is what became of that."""

    def __init__(self, ask: Ask[T]) -> None:
        super().__init__()
        self._ask = ask
        self.asked: Any = None

    def __call__(self, answer: T) -> None:
        super().__call__(answer)
        self.asked = self._ask(answer)


def join_then(c: Context, ask: Ask[JoinGroupResult], member: str = "", **other: Any) -> ThenAsk[JoinGroupResult]:
    answer = ThenAsk(ask)
    request = JoinGroupRequest(
        group_id=GroupId(GROUP),
        member_id=MemberId(member),
        group_instance_id=None,
        client_id="consumer-test",
        client_host="localhost",
        session_timeout_ms=SESSION_TIMEOUT,
        rebalance_timeout_ms=REBALANCE_TIMEOUT,
        protocol_type="consumer",
        protocols=PROTOCOLS,
    )
    c.coordinator.handle_join_group(request._replace(**other), answer)
    return answer


def sync_then(c: Context, ask: Ask[SyncGroupResult], generation: int, member: str) -> ThenAsk[SyncGroupResult]:
    answer = ThenAsk(ask)
    request = SyncGroupRequest(GroupId(GROUP), GenerationId(generation), MemberId(member))
    c.coordinator.handle_sync_group(request, answer)
    return answer


def two_members(c: Context) -> tuple[JoinGroupResult, JoinGroupResult]:
    """In generation 2, before anybody has synced. Leader first."""
    first = c.stable_group()
    newcomer = c.join()
    leader = c.join(member=first.member_id)
    return leader.result, newcomer.result


def test_members_sync_as_soon_as_they_have_joined() -> None:
    c = Context()
    joins = [join_then(c, lambda joined: c.sync(GROUP, joined.generation_id, joined.member_id)) for _ in range(3)]
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    assert [join.result.error for join in joins] == [ErrorCode.NONE] * 3
    assert [join.asked.result.error for join in joins] == [ErrorCode.NONE] * 3
    assert c.state() == "Stable"


def test_members_leave_as_soon_as_they_have_joined() -> None:
    c = Context()
    joins = [join_then(c, lambda joined: c.leave(GROUP, joined.member_id)) for _ in range(3)]
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    assert [join.result.error for join in joins] == [ErrorCode.NONE] * 3
    assert [join.asked.members[0].error for join in joins] == [ErrorCode.NONE] * 3
    assert c.state() == "Empty"


def test_a_member_that_hears_that_it_is_out_is_out() -> None:
    c = Context()
    c.stable_group(session=600_000, rebalance=600_000)
    joining = join_then(c, lambda _: c.leave(GROUP, newcomer))
    newcomer = list(c.group().members)[1]
    c.sleep(300_001)
    assert joining.result.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert joining.asked.members[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(c.group().members) == 1


def test_a_join_that_follows_the_answer_to_an_outdated_one_is_not_lost() -> None:
    """Repaired: a parked join or sync that the same member replaces by a new one is answered REBALANCE_IN_PROGRESS
    (2.6.3: never)
    """
    c = Context()
    first = c.stable_group(session=600_000, rebalance=600_000)
    c.join()
    newcomer = list(c.group().members)[1]
    outdated = join_then(c, lambda _: c.join(member=newcomer), newcomer)
    last = c.join(member=newcomer)
    assert outdated.result.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert c.join(member=first.member_id).result.error is ErrorCode.NONE
    answers = {last.result.error, outdated.asked.result.error}
    assert answers == {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
    assert c.group().awaiting_join == 0


def test_a_sync_that_follows_the_answer_to_an_outdated_one_is_not_lost() -> None:
    c = Context()
    leader, follower = two_members(c)
    outdated = sync_then(c, lambda _: c.sync(GROUP, 2, follower.member_id), 2, follower.member_id)
    last = c.sync(GROUP, 2, follower.member_id)
    assert outdated.result.error is ErrorCode.REBALANCE_IN_PROGRESS
    c.sync(GROUP, 2, leader.member_id)
    answers = {last.result.error, outdated.asked.result.error}
    assert answers == {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}


def test_a_fenced_member_that_comes_back_at_once_fences_in_turn() -> None:
    c = Context()
    leader, follower = c.static_pair(session=600_000)
    c.join()
    asked = {"instance": "follower", "protocols": PROTOCOL_SUPERSET}
    fenced = join_then(
        c,
        lambda _: c.join(**asked),
        follower.member_id,
        group_instance_id="follower",
        protocols=PROTOCOL_SUPERSET,
    )
    duplicate = c.join(**asked)
    assert fenced.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert c.join(member=leader.member_id, instance="leader", protocols=PROTOCOL_SUPERSET).is_done
    answers = {duplicate.result.error, fenced.asked.result.error}
    assert answers == {ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID}
    assert len(c.group().members) == 3


def test_a_member_that_joins_again_when_its_sync_fails_is_in_the_next_generation() -> None:
    c = Context()
    leader, follower = two_members(c)
    syncing = sync_then(c, lambda _: (c.state(), c.join(member=follower.member_id)), 2, follower.member_id)
    c.leave(GROUP, leader.member_id)
    assert syncing.result.error is ErrorCode.REBALANCE_IN_PROGRESS
    state, joining = syncing.asked
    assert state == "PreparingRebalance"
    assert (joining.result.error, joining.result.generation_id) == (ErrorCode.NONE, 3)
    assert c.state() == "CompletingRebalance"


def test_a_member_that_joins_again_when_the_assignment_was_not_written_is_in_the_next_generation() -> None:
    c = Context()
    leader, follower = two_members(c)
    syncing = sync_then(c, lambda _: (c.state(), c.join(member=follower.member_id)), 2, follower.member_id)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.sync(GROUP, 2, leader.member_id)
    assert syncing.result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    state, joining = syncing.asked
    assert state == "PreparingRebalance"
    assert c.join(member=leader.member_id).result.generation_id == 3
    assert (joining.result.error, joining.result.generation_id) == (ErrorCode.NONE, 3)


def test_whoever_joins_again_when_the_partition_moves_away_is_told_to_look_elsewhere() -> None:
    c = Context()
    joining = join_then(c, lambda _: c.join())
    c.resign(c.partition())
    assert joining.result.error is ErrorCode.NOT_COORDINATOR
    assert joining.asked.result.error is ErrorCode.NOT_COORDINATOR
