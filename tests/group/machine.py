"""Random lives of a coordinator: clients, clocks, elections, crashes, and a log that fails.

After each thing that happens the rules of the model are checked; at the end everything is let go, much time passes, and
nobody may be left waiting.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kohort.errors import ErrorCode
from kohort.group.states import GroupState
from kohort.log.names import TopicPartition
from tests.group import model
from tests.group.model_log import fold
from tests.group.model_topic import APPEND_ERRORS
from tests.group.model_world import PARTITIONS, PRODUCERS, PROTOCOLS, RETENTION_MS, CoordinatorWorld

GROUPS = ("g", "grüppe \0", "\U0001f99c")
INSTANCES = ("i", "ï")
TOPIC_PARTITIONS = (("t", 0), ("t", 1), ("ü", 0))

T = TypeVar("T", bound=Callable[..., None])
Where = list[tuple[str, int]]

STRATEGIES: dict[str, dict[str, st.SearchStrategy[Any]]] = {}
NAMES: list[str] = []


def action(weight: int, **strategies: st.SearchStrategy[Any]) -> Callable[[T], T]:
    """Something that may happen, with all that has to be chosen for it; the weight says how often."""

    def decorate(act: T) -> T:
        STRATEGIES[act.__name__] = strategies
        NAMES.extend([act.__name__] * weight)
        return act

    return decorate


@st.composite
def some_actions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """One rule for all: Hypothesis leaves out rules now and then, but most of what can go wrong needs many of these."""
    name = draw(st.sampled_from(NAMES))
    return name, {argument: draw(strategy) for argument, strategy in STRATEGIES[name].items()}


some_group = st.sampled_from((GROUPS[0], GROUPS[0], *GROUPS))
some_place = st.sampled_from((0, 0, 0, 1, 1, 2, 3, 5))
some_seat = st.sampled_from((0, 0, 0, 1, 2, None))
some_instance = st.sampled_from((INSTANCES[0], *INSTANCES))
some_protocols = st.sampled_from(("both", *PROTOCOLS))
some_session = st.sampled_from((6_000, 6_000, 500, 10))
some_rebalance_timeout = st.sampled_from((2_000, 500, 0))
some_shift = st.sampled_from((0, 0, 0, 0, 0, 0, -1, 1))
"""Of a generation, against the one that a member was told."""
some_partition = st.integers(0, PARTITIONS - 1)
some_topic_partitions = st.lists(st.sampled_from(TOPIC_PARTITIONS), min_size=1, max_size=3, unique=True)
some_error = st.sampled_from(APPEND_ERRORS)
some_producer = st.sampled_from(PRODUCERS)
some_newcomers = st.lists(st.none() | some_instance, min_size=1, max_size=3)


class CoordinatorMachine(RuleBasedStateMachine):
    """One life of a coordinator."""

    def __init__(self) -> None:
        super().__init__()
        self.w = CoordinatorWorld(GROUPS)
        self.is_whole = True

    @initialize(group=some_group, instances=some_newcomers)
    def in_the_beginning(self, group: str, instances: list[str | None]) -> None:
        self.w.form(group, instances)

    @rule(what=some_actions())
    def then(self, what: tuple[str, dict[str, Any]]) -> None:
        """Until the model has looked at what it did, the machine is not whole."""
        self.is_whole = False
        name, chosen = what
        getattr(self, name)(**chosen)

    @invariant()
    def look(self) -> None:
        self.w.look()
        self.is_whole = True

    def teardown(self) -> None:
        if self.is_whole:
            self.w.end()

    # Joining

    @action(2, group=some_group, instances=some_newcomers, deal=some_place)
    def a_group_forms(self, group: str, instances: list[str | None], deal: int) -> None:
        self.w.form(group, instances, deal)

    @action(
        3,
        group=some_group,
        require_known_id=st.booleans(),
        protocols=some_protocols,
        session=some_session,
        rebalance=some_rebalance_timeout,
        protocol_type=st.sampled_from(("consumer", "consumer", "consumer", "connect")),
        is_eager=st.booleans(),
    )
    def somebody_joins(self, **asked: Any) -> None:
        self.w.join(**asked)

    @action(
        2,
        group=some_group,
        which=some_place,
        protocols=some_protocols,
        instance=st.none() | some_instance,
    )
    def somebody_joins_with_the_id_it_was_given(self, group: str, which: int, **asked: Any) -> None:
        given = sorted(self.w.book.handed_out.get(group, ()))
        member = given[-1 - which % len(given)] if given else "nobody"
        self.w.join(group, member, require_known_id=True, **asked)

    @action(
        3,
        group=some_group,
        place=some_place,
        protocols=st.none() | some_protocols,
        session=some_session,
        is_eager=st.booleans(),
    )
    def a_member_joins_again(self, group: str, place: int, protocols: str | None, **asked: Any) -> None:
        if (seat := self.w.seat(group, place)) is not None:
            self.w.join(group, seat.member, seat.instance, protocols or seat.protocols, **asked)

    @action(2, group=some_group, is_eager=st.booleans())
    def all_members_join_again(self, group: str, is_eager: bool) -> None:
        for seat in self.w.newest_seats(group):
            self.w.join(group, seat.member, seat.instance, seat.protocols, is_eager=is_eager)

    @action(
        1,
        group=some_group,
        instance=some_instance,
        protocols=some_protocols,
        session=some_session,
        rebalance=some_rebalance_timeout,
        is_eager=st.booleans(),
    )
    def a_static_member_joins(self, **asked: Any) -> None:
        self.w.join(**asked)

    @action(3, place=some_place, protocols=st.none() | some_protocols, is_eager=st.booleans())
    def a_static_member_comes_back(self, place: int, protocols: str | None, is_eager: bool) -> None:
        """It has forgotten its member id."""
        if seats := [seat for seat in self.w.book.seats if seat.instance is not None]:
            seat = seats[-1 - place % len(seats)]
            self.w.join(seat.group, "", seat.instance, protocols or seat.protocols, is_eager=is_eager)

    @action(1, group=some_group, place=some_place, instance=some_instance)
    def a_member_joins_under_some_instance_id(self, group: str, place: int, instance: str) -> None:
        """Perhaps its own, perhaps another's."""
        if (seat := self.w.seat(group, place)) is not None:
            self.w.join(group, seat.member, instance, seat.protocols)

    # Synchronising, staying, leaving

    @action(3, group=some_group, place=some_place, deal=some_place, shift=some_shift)
    def a_member_syncs(self, group: str, place: int, deal: int, shift: int) -> None:
        if (seat := self.w.seat(group, place)) is not None:
            self.w.sync(seat, deal, shift)

    @action(3, group=some_group, deal=some_place)
    def all_members_sync(self, group: str, deal: int) -> None:
        for seat in self.w.newest_seats(group):
            self.w.sync(seat, deal)

    @action(1, group=some_group, deal=some_place)
    def a_leader_changes_its_mind(self, group: str, deal: int) -> None:
        for seat in self.w.newest_seats(group):
            if seat.others:
                self.w.sync(seat, deal)
                self.w.sync(seat, deal + 1)

    @action(2, group=some_group, place=some_place, shift=some_shift)
    def a_member_sends_a_heartbeat(self, group: str, place: int, shift: int) -> None:
        if (seat := self.w.seat(group, place)) is not None:
            self.w.heartbeat(seat, shift)

    @action(
        2,
        group=some_group,
        chosen=st.lists(some_place, min_size=1, max_size=3),
        by_instance=st.booleans(),
    )
    def members_leave(self, group: str, chosen: list[int], by_instance: bool) -> None:
        seats = [seat for place in chosen if (seat := self.w.seat(group, place)) is not None]
        leaving = [("" if by_instance and seat.instance else seat.member, seat.instance) for seat in seats]
        given_up = sorted(self.w.book.handed_out.get(group, ()))[-1:] if by_instance else []
        left = self.w.c.leave(group, *leaving, *given_up)
        assert left.error is not ErrorCode.NONE or len(left.members) == len(leaving) + len(given_up)

    # Offsets

    @action(
        9,
        group=some_group | st.just(""),
        where=some_topic_partitions,
        place=some_seat,
        shift=some_shift,
        expires_in=st.sampled_from((None, None, 1_000)),
        producer=st.none() | some_producer,
    )
    def somebody_commits(self, group: str, where: Where, place: int | None, **asked: Any) -> None:
        self.w.commit(group, where, self.w.seat(group, place), **asked)

    @action(2, group=some_group, where=some_topic_partitions, place=some_seat, producer=some_producer)
    def commits_cross(self, group: str, where: Where, place: int | None, producer: int) -> None:
        """What a transaction has committed stands before what counts already, when it ends."""
        for each in (producer, None):
            self.w.commit(group, where, self.w.seat(group, place), producer=each)

    @action(4, producer=some_producer, is_commit=st.booleans(), also=st.none() | some_partition)
    def a_transaction_ends(self, producer: int, is_commit: bool, also: int | None) -> None:
        """Wherever the producer has written, and perhaps in one partition more."""
        is_open = {partition: producer in fold(self.w.log(partition)).pending for partition in range(PARTITIONS)}
        for partition in range(PARTITIONS):
            if partition == also or is_open[partition]:
                self.w.end_transaction(partition, producer, is_commit=is_commit)

    @action(1, groups=st.lists(st.sampled_from(("", *GROUPS)), min_size=1, max_size=3, unique=True))
    def groups_are_deleted(self, groups: list[str]) -> None:
        for name in groups:
            if (group := self.w.c.find(name)) is not None and group.state is GroupState.EMPTY:
                self.w.may_go |= {name, *((name, *where) for where in TOPIC_PARTITIONS)}
        self.w.ask("delete groups", tuple(groups), self.w.c.delete(*groups))

    @action(1, group=some_group, where=some_topic_partitions)
    def offsets_are_deleted(self, group: str, where: Where) -> None:
        found = self.w.c.find(group)
        if found is not None and (found.protocol_type == "consumer" or not found.members):
            spared = model.subscribed(found) if found.state is GroupState.STABLE else ()
            self.w.let_go((group, *each) for each in where if each[0] not in spared)
        self.w.ask("delete offsets", group, self.w.c.delete_offsets(where, group))

    @action(1, where=some_topic_partitions)
    def topic_partitions_are_deleted(self, where: Where) -> None:
        self.w.let_go((group, *each) for group in ("", *GROUPS) for each in where)
        self.w.c.coordinator.handle_deleted_partitions([TopicPartition(*each) for each in where])

    @action(1)
    def what_has_expired_is_removed(self) -> None:
        self.w.expire()

    # Time

    @action(3, ms=st.sampled_from((1, 11, 51, 501, 2_001)))
    def a_little_time_passes(self, ms: int) -> None:
        self.w.c.sleep(ms)

    @action(2, ms=st.sampled_from((501, 5_001, 6_001)), pause=st.sampled_from((51, 400)))
    def time_passes_while_members_send_heartbeats(self, ms: int, pause: int) -> None:
        for _ in range(0, ms, pause):
            for seat in (seat for group in GROUPS for seat in self.w.newest_seats(group)):
                self.w.heartbeat(seat)
            self.w.c.sleep(pause)

    @action(1, ms=st.sampled_from((5_001, 6_001, RETENTION_MS, 300_001)))
    def much_time_passes(self, ms: int) -> None:
        self.w.c.sleep(ms)

    @action(1, ms=st.sampled_from((-3_600_000, -1_000, 1_000, RETENTION_MS, 3_600_000)))
    def somebody_sets_the_clock(self, ms: int) -> None:
        self.w.clock.jump(ms)

    # Partitions come and go

    @action(2, partition=some_partition, ahead=st.sampled_from((1, 1, 0, -1)))
    def a_partition_is_won(self, partition: int, ahead: int) -> None:
        self.w.elect(partition, self.w.epochs.get(partition, 0) + ahead)

    @action(1, partition=some_partition, ahead=st.sampled_from((1, None, 0, -1)), comes_back=st.booleans())
    def a_partition_is_lost(self, partition: int, ahead: int | None, comes_back: bool) -> None:
        self.w.resign(partition, None if ahead is None else self.w.epochs.get(partition, 0) + ahead)
        if comes_back and partition not in self.w.led:
            self.w.elect(partition, self.w.epochs.get(partition, 0) + 1)

    @action(1, in_order=st.booleans(), is_lost=st.booleans())
    def the_coordinator_ends_and_another_begins(self, in_order: bool, is_lost: bool) -> None:
        self.w.restart(in_order=in_order, is_lost=is_lost)

    @action(2, how=st.sampled_from(("hold", "finish", "finish", "fail")))
    def loads(self, how: str) -> None:
        """Failing ones fail until they are finished again."""
        {"finish": self.w.finish_loads, "hold": self.w.hold_loads, "fail": self.w.fail_loads}[how]()

    # The log misbehaves

    @action(2, error=some_error, times=st.integers(1, 2), are_doubtful=st.booleans())
    def appends_will_fail(self, error: ErrorCode, times: int, are_doubtful: bool) -> None:
        """Doubtful ones stand in the log all the same."""
        if are_doubtful:
            self.w.topic.doubt_next(error)
        else:
            self.w.topic.fail_next(error, times)

    @action(4)
    def appends_take_time(self) -> None:
        self.w.topic.hold()

    @action(3, how_many=st.sampled_from((1, 2, 100)))
    def appends_are_safe(self, how_many: int) -> None:
        for _ in range(min(how_many, self.w.topic.held)):
            self.w.topic.release_one()
        if how_many == 100:
            self.w.topic.release()

    @action(1, error=some_error)
    def held_appends_fail(self, error: ErrorCode) -> None:
        self.w.fail_held(error)
