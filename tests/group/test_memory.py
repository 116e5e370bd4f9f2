"""`group.max.bytes` and `group.coordinator.max.bytes`: members never take more memory than that, whatever they say.

Kafka has neither; there a few members with large subscriptions take all the memory of a broker.
"""

import random

from kohort.errors import ErrorCode
from kohort.group.group_metadata import GroupMetadata
from kohort.group.requests import GroupId
from tests.group.context import GROUP, INITIAL_DELAY, Context

KIB = 1024
FULL, TRY_AGAIN = ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.COORDINATOR_NOT_AVAILABLE


def protocols(size: int) -> tuple[tuple[str, bytes], ...]:
    return (("range", bytes(size)),)


def held(c: Context) -> int:
    return c.manager.memory.held


def check(c: Context) -> None:
    """What is counted is what is there."""
    groups = c.manager.current_groups
    assert held(c) == sum(group.held_bytes for group in groups)
    for group in groups:
        pending = sum(KIB + len(member_id) for member_id in group.pending_members)
        assert group.held_bytes == pending + sum(member.size for member in group.members.values())


def test_a_member_that_says_too_much_is_turned_away_before_anything_of_it_is_kept() -> None:
    """Repaired: a group takes no more memory than group.max.bytes, and a join that would is GROUP_MAX_SIZE_REACHED
    (Kafka: members may bring as much as fits into a request, each of them)
    """
    c = Context(group_max_bytes=100 * KIB)
    assert c.join(protocols=protocols(200 * KIB)).result.error is FULL
    assert held(c) == 0
    first = c.join(protocols=protocols(60 * KIB))
    assert c.join(protocols=protocols(60 * KIB)).result.error is FULL
    second = c.join(protocols=protocols(20 * KIB))
    c.sleep(INITIAL_DELAY + 1)
    c.sleep(INITIAL_DELAY + 1)
    assert [first.result.error, second.result.error] == [ErrorCode.NONE] * 2
    check(c)


def test_one_who_says_more_than_before_is_turned_away_and_stays_who_it_was() -> None:
    c = Context(group_max_bytes=100 * KIB)
    member = c.dynamic_join(protocols=protocols(60 * KIB))
    before = held(c)
    assert c.join(member=member.member_id, protocols=protocols(120 * KIB)).result.error is FULL
    assert held(c) == before
    assert c.heartbeat(GROUP, member.member_id, member.generation_id) is ErrorCode.NONE
    again = c.join(member=member.member_id, protocols=protocols(60 * KIB))  # no more than before is never too much
    assert again.result.error is ErrorCode.NONE
    check(c)


def test_all_groups_together_have_a_limit_and_who_comes_then_may_try_again() -> None:
    """Repaired: all groups together take no more memory than group.coordinator.max.bytes; a join that would is
    COORDINATOR_NOT_AVAILABLE, which clients try again
    """
    c = Context(group_max_bytes=100 * KIB, group_coordinator_max_bytes=150 * KIB)
    names = [name for name in (f"group-{n}" for n in range(50)) if c.coordinator.partition_for(GroupId(name)) == 0]
    c.elect(0)
    first = c.join(names[0], protocols=protocols(90 * KIB))
    assert c.join(names[1], protocols=protocols(90 * KIB)).result.error is TRY_AGAIN
    c.sleep(INITIAL_DELAY + 1)
    c.leave(names[0], first.result.member_id)
    assert not c.join(names[1], protocols=protocols(90 * KIB)).is_done
    check(c)


def test_ids_that_nobody_comes_back_with_count_until_their_time_is_up() -> None:
    c = Context(group_max_bytes=100 * KIB)
    errors = [c.join(require_known_id=True, session=500).result.error for _ in range(200)]
    assert errors.count(ErrorCode.MEMBER_ID_REQUIRED) < 100
    assert errors[-1] is FULL
    c.sleep(501)
    assert held(c) == 0
    assert c.join(require_known_id=True).result.error is ErrorCode.MEMBER_ID_REQUIRED


def test_no_group_is_made_when_there_is_no_room_for_a_member() -> None:
    c = Context(group_coordinator_max_bytes=KIB)
    c.join(require_known_id=True)
    c.join("another", require_known_id=True)
    assert len(c.manager.current_groups) <= 1


def test_an_assignment_that_is_too_large_is_not_kept() -> None:
    c = Context(group_max_bytes=100 * KIB)
    leader = c.dynamic_join(protocols=protocols(10 * KIB))
    synced = c.sync(GROUP, leader.generation_id, leader.member_id, {leader.member_id: bytes(95 * KIB)})
    assert synced.result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert held(c) < 15 * KIB
    assert c.state() == "PreparingRebalance"
    check(c)


def test_an_assignment_counts() -> None:
    c = Context(group_max_bytes=100 * KIB)
    leader = c.dynamic_join(protocols=protocols(10 * KIB))
    c.sync(GROUP, leader.generation_id, leader.member_id, {leader.member_id: bytes(50 * KIB)})
    assert held(c) > 60 * KIB
    check(c)
    assert c.join(protocols=protocols(50 * KIB)).result.error is FULL


def test_what_goes_does_not_count_any_more() -> None:
    c = Context()
    leader = c.dynamic_join(protocols=protocols(10 * KIB))
    c.sync(GROUP, leader.generation_id, leader.member_id, {leader.member_id: bytes(KIB)})
    c.join(require_known_id=True)
    c.coordinator.on_resignation(c.coordinator.partition_for(GroupId(GROUP)), None)
    assert held(c) == 0
    c.elect(c.coordinator.partition_for(GroupId(GROUP)), 1)
    assert held(c) > 10 * KIB  # as it was loaded
    check(c)


def test_whatever_happens_to_members_the_count_is_right() -> None:
    chance = random.Random(7)
    c = Context(group_max_size=10, group_max_bytes=200 * KIB)
    known: list[str] = []
    for _ in range(600):
        match chance.randrange(7):
            case 0:
                joined = c.join(protocols=protocols(chance.randrange(30 * KIB)), require_known_id=True)
                if joined.is_done and joined.result.member_id:
                    known.append(joined.result.member_id)
            case 1 | 2 if known:
                c.join(member=chance.choice(known), protocols=protocols(chance.randrange(30 * KIB)))
            case 3:
                c.join(instance=f"static-{chance.randrange(3)}", protocols=protocols(chance.randrange(30 * KIB)))
            case 4 if known:
                c.leave(GROUP, chance.choice(known))
            case 5:
                group: GroupMetadata | None = c.manager.get_group(GroupId(GROUP))
                if group is not None and group.leader_id is not None:
                    shares = {member_id: bytes(chance.randrange(5 * KIB)) for member_id in group.members}
                    c.sync(GROUP, group.generation_id, group.leader_id, shares)
            case _:
                c.sleep(chance.randrange(400))
        check(c)
        assert held(c) <= 200 * KIB
