"""Commits that are kept as bytes are the same to everybody who asks as commits that are kept as values."""

import random

import pytest

from kohort.errors import ErrorCode
from kohort.group.group_offsets import _MOST_UNOPENED, GroupOffsets
from kohort.group.requests import GroupId, Offsets
from kohort.group.written_commits import WrittenCommits
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetCommitValue
from tests.group.context import GROUP, Context
from tests.group.context import written as as_bytes

PARTITIONS = [TopicPartition(topic, number) for topic in "ab" for number in range(3)]


def written(offsets: Offsets) -> WrittenCommits:
    return as_bytes(GroupId(GROUP), offsets, 1_000)


def commit(noise: random.Random, number: int) -> dict[TopicPartition, OffsetCommitValue]:
    chosen = noise.sample(PARTITIONS, noise.choice((1, 2, len(PARTITIONS))))
    return {partition: OffsetCommitValue(number, noise.choice(("", "m")), 1_000) for partition in chosen}


def everything(offsets: GroupOffsets, *, asked: random.Random) -> dict[str, object]:
    """What can be asked; now and then only a little of it, so that some commits stay unopened."""
    questions = {
        "any": lambda: offsets.has_any,
        "committed": lambda: dict(offsets.items()),
        "length": lambda: len(offsets),
        "pending": lambda: [offsets.has_pending_for(partition) for partition in PARTITIONS],
        "partitions": lambda: sorted(offsets.partitions()),
        "only": lambda: offsets.has_only(PARTITIONS[:4]),
        "among": lambda: sorted(offsets.among(frozenset(PARTITIONS[2:]))),
        "one": lambda: offsets.get(PARTITIONS[0]),
        "consistent": lambda: offsets.are_consistent,
    }
    return {name: ask() for name, ask in questions.items() if asked.random() < 0.3}


@pytest.mark.parametrize("seed", range(40))
def test_the_same_is_told_of_both_kinds(seed: int) -> None:
    noise = random.Random(seed)
    plain, bytewise = GroupOffsets(), GroupOffsets()
    in_flight: list[tuple[Offsets, Offsets]] = []
    position = 0
    for number in range(120):
        match noise.randrange(7):
            case 0 | 1 | 2:
                values = commit(noise, number)
                both = (values, written(values) if noise.random() < 0.8 else values)
                plain.prepare_commit(both[0])
                bytewise.prepare_commit(both[1])
                in_flight.append(both)
            case 3 if in_flight:
                values, raw = in_flight.pop(0)
                plain.on_commit_append(values, position)
                bytewise.on_commit_append(raw, position)
                position += len(values)
            case 4 if in_flight:
                values, raw = in_flight.pop(noise.randrange(len(in_flight)))
                plain.fail_pending_commit(values)
                bytewise.fail_pending_commit(raw)
            case 5:
                gone = noise.sample(PARTITIONS, 2)
                assert plain.remove(gone, position) == bytewise.remove(gone, position)
                position += 2
            case 6:
                values = commit(noise, number)
                for offsets in (plain, bytewise):
                    offsets.prepare_txn_commit(7, values)
                    offsets.on_txn_commit_append(7, values, position)
                    offsets.complete_txn(7, is_commit=number % 2 == 0)
                position += len(values)
            case _:
                pass
        asked = noise.random()
        assert everything(bytewise, asked=random.Random(asked)) == everything(plain, asked=random.Random(asked))


def test_the_latest_of_each_shape_is_all_that_is_kept() -> None:
    offsets = GroupOffsets()
    for number in range(1_000):
        commits = written({partition: OffsetCommitValue(number, "", 1_000) for partition in PARTITIONS})
        offsets.prepare_commit(commits)
        offsets.on_commit_append(commits, number * len(PARTITIONS))
    assert len(offsets._unopened) == 1
    assert not offsets._unopened_in_flight
    found = offsets.get(PARTITIONS[3])
    assert found is not None
    assert found.offset == 999


def test_many_shapes_are_opened_before_they_pile_up() -> None:
    offsets = GroupOffsets()
    for number in range(100):
        commits = written({TopicPartition("a", number): OffsetCommitValue(1, "", 1_000)})
        offsets.prepare_commit(commits)
        offsets.on_commit_append(commits, number)
        assert len(offsets._unopened) <= _MOST_UNOPENED
    assert len(offsets) == 100


def test_a_coordinator_takes_them_as_it_takes_values() -> None:
    c = Context()
    assert c.commit({("a", 0): 5}, as_bytes=True).result == {TopicPartition("a", 0): ErrorCode.NONE}
    assert c.offset("a", 0) == 5
    assert c.restarted().offset("a", 0) == 5


def test_those_that_wait_too_long_are_told_in_the_order_in_which_they_came() -> None:
    c = Context()
    c.commit({("a", 0): 1})
    c.topic.hold()
    timeout_ms = c.config.offsets_commit_timeout_ms
    first = c.commit({("a", 0): 5}, as_bytes=True)
    c.sleep(1_000)
    second, third = (c.commit({("a", 0): offset}, as_bytes=True) for offset in (6, 7))
    c.topic.release_one()
    assert first.result == {TopicPartition("a", 0): ErrorCode.NONE}
    c.sleep(timeout_ms)
    assert not second.is_done
    c.sleep(1)
    for late in (second, third):
        assert late.result == {TopicPartition("a", 0): ErrorCode.REQUEST_TIMED_OUT}
    assert c.offset("a", 0) == 5
    c.topic.release()
    assert c.offset("a", 0) == 7
    last = c.commit({("a", 0): 8}, as_bytes=True)
    assert last.result == {TopicPartition("a", 0): ErrorCode.NONE}
    c.sleep(2 * timeout_ms)
    assert c.offset("a", 0) == 8
