"""Much that expires at once goes in small steps, and whatever happens between two of them counts."""

import pytest

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetKey
from tests.group.context import GROUP, Context, only, subscription
from tests.group.log_builder import offsets_of
from tests.group.test_expiry_in_flight import assert_as_after_a_restart, expire, with_offsets

MANY = 20_000


def run_in_steps(c: Context) -> list[int]:
    """Do what is left to do; how many records each step has written."""
    steps, end = [], c.end_offset()
    for _ in range(1_000):
        c.sleep(1)
        steps.append(c.end_offset() - end)
        end = c.end_offset()
        if not steps[-1]:
            return steps
    raise AssertionError("it goes on and on")


def test_many_expired_offsets_of_one_group_go_in_steps() -> None:
    c = with_offsets(MANY)
    start = c.end_offset()
    expire(c)
    first = c.end_offset() - start
    assert 0 < first <= MANY // 4
    assert first + len(c.group().offsets) == MANY
    steps = run_in_steps(c)
    assert max(steps) <= MANY // 4
    assert first + sum(steps) == MANY
    assert c.find() is None
    gone = [key for key, told in c.records(start=start) if told is None]
    assert len(gone) == len(set(gone)) == MANY
    assert c.coordinator.snapshot()["offset-expiration-count"] == MANY
    assert_as_after_a_restart(c)


def test_many_expired_offsets_of_many_groups_go_in_steps() -> None:
    c = Context(offsets_retention_minutes=1, offsets_topic_num_partitions=1)
    for number in range(400):
        with_offsets(50, f"group-{number}", c)
    start = c.end_offset()
    assert start == MANY
    expire(c)
    first = c.end_offset() - start
    assert 0 < first <= MANY // 4
    assert c.manager.current_groups
    steps = run_in_steps(c)
    assert max(steps) <= MANY // 4
    assert first + sum(steps) == MANY
    assert not c.manager.current_groups
    assert c.coordinator.snapshot()["offset-expiration-count"] == MANY


def test_others_are_served_between_two_steps() -> None:
    c = with_offsets(MANY)
    expire(c)
    joined = c.dynamic_join("foo")
    assert joined.error is ErrorCode.NONE
    c.settle()
    assert c.find() is None
    assert c.find("foo") is not None


def half_expired(number: int = MANY) -> tuple[Context, list[tuple[str, int]]]:
    """In the middle of a sweep, and what has not gone yet."""
    c = with_offsets(number)
    expire(c)
    left = [tuple(partition) for partition in c.group().offsets]
    assert 0 < len(left) < number
    return c, left


def test_a_commit_between_two_steps_survives() -> None:
    c, left = half_expired()
    for first in range(0, len(left), 500):
        c.commit(dict.fromkeys(left[first : first + 500], 38))
    c.settle()
    assert offsets_of(c) == dict.fromkeys(left, 38)
    assert_as_after_a_restart(c)


def test_a_commit_between_any_two_steps_survives() -> None:
    c, _ = half_expired()
    alive: set[tuple[str, int]] = set()
    while c.find() is not None and len(alive) < 60:
        rest = [tuple(partition) for partition in c.group().offsets if tuple(partition) not in alive]
        if not rest:
            break
        chosen = {rest[0], rest[len(rest) // 2], rest[-1]}
        c.commit(dict.fromkeys(chosen, 38))
        alive |= chosen
        c.sleep(1)
    c.settle()
    assert offsets_of(c) == dict.fromkeys(alive, 38)
    assert_as_after_a_restart(c)


@pytest.mark.parametrize("others", range(700, 1_000, 25))
def test_a_commit_survives_wherever_the_pause_falls(others: int) -> None:
    """Between the look at an offset and the writing of its tombstone, too."""
    c = with_offsets(others, "foo")
    with_offsets(900, c=c)
    expire(c)
    left = {} if c.find() is None else dict.fromkeys(offsets_of(c), 38)
    if left:
        c.commit(left)
    c.settle()
    assert ({} if c.find() is None else offsets_of(c)) == left
    assert_as_after_a_restart(c)


def test_a_commit_between_two_batches_of_one_group_survives() -> None:
    """Long names: the tombstones do not fit into one batch, and the second waits for the first."""
    c = Context(offsets_retention_minutes=1)
    topics = [f"{n}-" + "x" * 30_000 for n in range(20)]
    for topic in topics:
        c.commit({(topic, 0): 37})
    c.topic.hold()
    expire(c)
    assert c.topic.held == 1
    commit = c.commit({(topics[-1], 0): 38})
    while c.topic.held:
        c.topic.release_one()
        c.sleep(1)
    assert only(commit.result) is ErrorCode.NONE
    assert offsets_of(c) == {(topics[-1], 0): 38}
    assert_as_after_a_restart(c)


def test_a_transactional_commit_between_two_steps_survives() -> None:
    c, left = half_expired()
    c.txn_commit(1000, dict.fromkeys(left[-500:], 38))
    c.settle()
    c.end_txn(1000, c.partition(), is_commit=True)
    assert offsets_of(c) == dict.fromkeys(left[-500:], 38)
    assert_as_after_a_restart(c)


def test_a_member_that_joins_between_two_steps_keeps_what_is_left() -> None:
    c, left = half_expired()
    joined = c.join(protocols=(("range", subscription("foo")),), session=600_000, rebalance=600_000)
    c.settle(51)
    assert joined.result.error is ErrorCode.NONE
    assert offsets_of(c) == dict.fromkeys(left, 37)
    assert_as_after_a_restart(c)


def test_a_failure_between_two_steps_leaves_what_is_left_to_the_next_time() -> None:
    c, left = half_expired()
    c.topic.elsewhere.add(c.partition())
    c.settle()
    c.topic.elsewhere.clear()
    assert len(c.group().offsets) > 0
    assert_as_after_a_restart(c)
    assert only(c.commit({left[-1]: 38}).result) is ErrorCode.NONE
    c.coordinator.cleanup_group_metadata()
    c.settle()
    assert offsets_of(c) == {left[-1]: 38}
    assert_as_after_a_restart(c)


def test_tombstones_of_long_names_fit_into_the_log() -> None:
    c = Context(offsets_retention_minutes=1)
    topics = [f"{n}-" + "x" * 30_000 for n in range(100)]
    for topic in topics:
        assert only(c.commit({(topic, 0): 1}).result) is ErrorCode.NONE
    start = c.end_offset()
    expire(c)
    c.settle()
    assert c.find() is None
    assert [key for key, _ in c.records(start=start)] == [OffsetKey(GROUP, topic, 0) for topic in topics]


def test_the_offsets_of_a_deleted_topic_go_in_steps_too() -> None:
    c = with_offsets(MANY)
    c.commit({("bar", 0): 5})
    start = c.end_offset()
    c.coordinator.handle_deleted_partitions([TopicPartition("foo", n) for n in range(MANY)])
    assert c.end_offset() - start <= MANY // 4
    c.settle()
    assert offsets_of(c) == {("bar", 0): 5}
    assert_as_after_a_restart(c)
