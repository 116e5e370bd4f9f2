"""What a coordinator counts, under Kafka's names."""

import math

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.group_metadata import GroupMetadata
from kohort.group.metrics import LoadTimes, Meter
from kohort.group.requests import GroupId
from kohort.group.states import GroupState
from tests.group.context import GROUP, Context
from tests.group.log_builder import OFFSETS, batch, commits, group_record, written

WINDOW = 30_000


def gauges(c: Context) -> tuple[float, float, float]:
    told = c.coordinator.snapshot()
    return told["NumGroups"], told["NumGroupsPreparingRebalance"], told["NumGroupsCompletingRebalance"]


def test_groups_are_counted_by_their_states() -> None:
    """GMM testMetrics"""
    c = Context()
    c.coordinator.cleanup_group_metadata()
    assert gauges(c) == (0, 0, 0)
    group = GroupMetadata(GroupId("foo2"), c.clock, state=GroupState.STABLE)
    c.manager.add_group(group)
    assert gauges(c) == (1, 0, 0)
    group.transition_to(GroupState.PREPARING_REBALANCE)
    assert gauges(c) == (1, 1, 0)
    group.transition_to(GroupState.COMPLETING_REBALANCE)
    assert gauges(c) == (1, 0, 1)


def test_a_load_is_measured() -> None:
    """GMM testPartitionLoadMetric"""
    c = written(batch(*commits(OFFSETS), group_record(15, "98098230493")))
    told = c.coordinator.snapshot()
    assert math.isnan(told["partition-load-time-max"])
    assert math.isnan(told["partition-load-time-avg"])
    c.topic.hold_loads()
    c.elect(c.partition())
    c.clock.advance(1_000)
    c.topic.finish_loads()
    told = c.coordinator.snapshot()
    assert (told["partition-load-time-max"], told["partition-load-time-avg"]) == (1_000, 1_000)
    assert told["partition-load-records"] == 4


def test_every_metric_has_its_kafka_name() -> None:
    names = set(Context().coordinator.snapshot())
    assert {f"NumGroups{state.value}" for state in GroupState} <= names
    for what in ("offset-commit", "offset-expiration", "offset-deletion", "group-completed-rebalance"):
        assert {f"{what}-count", f"{what}-rate"} <= names
    assert {"NumGroups", "NumOffsets", "partition-load-time-max", "partition-load-time-avg"} <= names


def test_a_life_is_counted() -> None:
    """Repaired: offset-commit-count counts offsets that were committed (2.6.3: also those whose append failed)"""
    c = Context(offsets_retention_minutes=1)
    joined = c.stable_group()
    c.commit({("foo", 0): 1, ("foo", 1): 1}, member=joined.member_id, generation=1)
    c.topic.fail_next(ErrorCode.NOT_ENOUGH_REPLICAS)
    c.commit({("foo", 2): 1}, member=joined.member_id, generation=1)
    told = c.coordinator.snapshot()
    assert (told["NumOffsets"], told["NumGroupsStable"]) == (2, 1)
    assert (told["offset-commit-count"], told["group-completed-rebalance-count"]) == (2, 1)

    c.leave(GROUP, joined.member_id)
    assert c.delete_offsets([("foo", 0), ("nothing", 0)]).result[0] is ErrorCode.NONE
    told = c.coordinator.snapshot()
    assert (told["offset-deletion-count"], told["NumOffsets"], told["NumGroupsEmpty"]) == (1, 1, 1)

    c.clock.advance(60_000)
    c.coordinator.cleanup_group_metadata()
    told = c.coordinator.snapshot()
    assert (told["offset-expiration-count"], told["NumOffsets"], told["NumGroups"]) == (1, 0, 0)
    assert told["offset-commit-count"] == 2


def test_a_rate_is_of_the_last_two_windows() -> None:
    clock = VirtualClock()
    meter = Meter(clock)
    assert meter.rate() == 0
    meter.record(60)
    assert meter.rate() == 2
    clock.advance(WINDOW)
    assert meter.rate() == 2
    clock.advance(WINDOW // 2)
    meter.record(30)
    assert meter.rate() == 2
    clock.advance(WINDOW)
    assert meter.rate() == 30 * 1_000 / (WINDOW * 1.5)
    clock.advance(3 * WINDOW)
    assert (meter.rate(), meter.count) == (0, 90)


def test_a_rate_does_not_know_the_time_of_day() -> None:
    clock = VirtualClock()
    meter = Meter(clock)
    meter.record(30)
    clock.jump(-86_400_000)
    assert meter.rate() == 1
    clock.jump(10 * 86_400_000)
    assert meter.rate() == 1


def test_load_times_are_those_of_the_last_minute() -> None:
    clock = VirtualClock()
    times = LoadTimes(clock)
    times.record(100, 1)
    times.record(300, 2)
    assert (times.maximum(), times.average(), times.loaded_records) == (300, 200, 3)
    clock.advance(WINDOW)
    times.record(50, 1)
    assert (times.maximum(), times.average()) == (300, 150)
    clock.advance(2 * WINDOW)
    assert (times.maximum(), times.average()) == (50, 50)
    clock.advance(1)
    assert math.isnan(times.maximum())
    assert math.isnan(times.average())
    assert times.loaded_records == 4
