"""A coordinator, its log and its clients, with short words for all that may happen to them.

w = CoordinatorWorld()
w.join("g", instance="i")
w.c.sleep(51)
w.look()            # every rule of the model holds
w.end()             # and nobody is left waiting
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kohort.clock import VirtualClock
from kohort.config import GroupConfig
from kohort.errors import CorruptLog, ErrorCode
from kohort.group.coordinator import GroupCoordinator
from kohort.group.requests import GroupId, JoinGroupRequest, JoinGroupResult, MemberId, Protocols
from kohort.group.states import GroupState
from tests.group import model
from tests.group.context import Answer, Context, subscription, value
from tests.group.model_clients import Book, Request, Seat, seat_of
from tests.group.model_log import Entry, OffsetId, Write
from tests.group.model_topic import ReadOnlyTopic, WatchedTopic

PARTITIONS = 3
RETENTION_MS = 60_000
PRODUCERS = (1, 2)

CONFIG = GroupConfig(
    group_min_session_timeout_ms=10,
    group_max_session_timeout_ms=600_000,
    group_max_size=3,
    group_initial_rebalance_delay_ms=50,
    offsets_topic_num_partitions=PARTITIONS,
    offsets_retention_minutes=RETENTION_MS // 60_000,
)

PROTOCOLS: dict[str, Protocols] = {
    "range": (("range", subscription("t")),),
    "both": (("range", subscription("t")), ("roundrobin", subscription("t", "ü"))),
    "other order": (("roundrobin", subscription("ü")), ("range", subscription("ü"))),
}


class Incarnation(Context):
    """A coordinator that owns nothing yet; no two of them ever give the same member id."""

    def __init__(self, topic: Any, clock: VirtualClock, numbers: Iterator[int]) -> None:
        self.clock = clock
        self.topic = topic
        self.config = CONFIG
        self.coordinator = GroupCoordinator(CONFIG, clock, topic, new_uuid=lambda: f"{next(numbers)}")
        self.manager = self.coordinator.manager
        self.coordinator.startup(enable_metadata_expiration=False)


class EagerAnswer(Answer[JoinGroupResult]):
    """Whoever gets it may ask again at once, while the coordinator is still at the answers of others."""

    def __init__(self, then: Callable[[JoinGroupResult], None] | None) -> None:
        super().__init__()
        self._then = then

    def __call__(self, answer: JoinGroupResult) -> None:
        super().__call__(answer)
        if self._then is not None and answer.error is ErrorCode.NONE:
            self._then(answer)


class CoordinatorWorld:
    """One coordinator after another on one log; the model's `World`."""

    def __init__(self, group_ids: Sequence[str] = ("g",)) -> None:
        self.group_ids = group_ids
        self.clock = VirtualClock()
        self.topic = WatchedTopic(self.clock)
        self.book = Book()
        self.led: dict[int, str] = {}
        self.epochs: dict[int, int] = {}
        self.may_go: set[OffsetId | str] = set()
        """What may get a tombstone before the model looks again: offsets, and groups by their names."""
        self._numbers = itertools.count(1)
        self._offsets = itertools.count(1)
        self._looked_at: dict[int, int] = defaultdict(int)
        self._are_loads_held = False
        self._do_loads_fail = False
        self.c = Incarnation(self.topic, self.clock, self._numbers)
        for partition in range(PARTITIONS):
            self.elect(partition, 0)

    # What the model looks at

    def log(self, partition: int) -> Sequence[Entry]:
        return self.topic.entries(partition)

    def writes(self, partition: int) -> Sequence[Write]:
        return self.topic.writes[partition]

    def held(self, partition: int) -> Sequence[Write]:
        return [write for write in self.topic.unsettled if write.partition == partition]

    def restarted(self) -> Context:
        successor = Incarnation(ReadOnlyTopic(self.topic), self.clock, self._numbers)
        for partition in model.owned(self):
            successor.elect(partition)
        return successor

    def look(self) -> None:
        """All that the model says holds."""
        self.book.hear(self)
        for holds in model.ALWAYS:
            holds(self)
        self._only_what_may_go_has_gone()
        self.may_go.clear()

    def _only_what_may_go_has_gone(self) -> None:
        for partition in range(PARTITIONS):
            log = self.log(partition)
            for entry in log:
                if entry.position >= self._looked_at[partition] and entry.ends is None and entry.value is None:
                    gone = entry.offset_id or entry.group
                    assert gone in self.may_go, f"{gone} has a tombstone that nobody asked for"
            self._looked_at[partition] = log[-1].position + 1 if log else 0

    def _look_again_at(self, writes: Iterable[Write]) -> None:
        """Something else will stand there."""
        for write in writes:
            self._looked_at[write.partition] = min(self._looked_at[write.partition], write.entries[0].position)

    # Clients

    def seat(self, group: str, place: int | None) -> Seat | None:
        """One of those who were told something, counted from the last one."""
        seats = [seat for seat in self.book.seats if seat.group == group]
        return seats[-1 - place % len(seats)] if seats and place is not None else None

    def newest_seats(self, group: str) -> list[Seat]:
        seats = {seat.member: seat for seat in self.book.seats if seat.group == group}.values()
        newest = max((seat.generation for seat in seats), default=0)
        return [seat for seat in seats if seat.generation == newest]

    def is_past(self, group: str, member: str, generation: int) -> bool:
        view = self.book.views.get(group)
        return view is not None and view.is_past(member, generation)

    def ask(self, kind: str, group: str | tuple[str, ...], answer: Answer[Any], **more: Any) -> Request:
        """Note that somebody waits for this answer."""
        groups = (group,) if isinstance(group, str) else group
        request = Request(kind, groups, answer, self.clock.monotonic_ms(), **more)
        self.book.waiting.append(request)
        return request

    def join(
        self,
        group: str,
        member: str = "",
        instance: str | None = None,
        protocols: str = "both",
        session: int = 6_000,
        rebalance: int = 2_000,
        protocol_type: str = "consumer",
        require_known_id: bool = False,
        is_eager: bool = False,
    ) -> None:
        view = self.book.views.get(group)
        must_fail = view is not None and member in view.replaced
        answer = EagerAnswer((lambda joined: self.sync(seat_of(request, joined))) if is_eager else None)
        request = self.ask("join", group, answer, instance=instance, protocols=protocols, must_fail=must_fail)
        asked = JoinGroupRequest(
            GroupId(group),
            MemberId(member),
            instance,
            "client",
            "host",
            session,
            rebalance,
            protocol_type,
            PROTOCOLS[protocols],
            require_known_id,
        )
        self.c.coordinator.handle_join_group(asked, answer)

    def sync(self, seat: Seat, deal: int = 0, shift: int = 0) -> None:
        """A leader deals out as many partitions as there are members, one to each; how, is up to it."""
        others = sorted(seat.others)
        dealt = {member: bytes([(place + deal) % len(others)]) for place, member in enumerate(others)}
        generation = seat.generation + shift
        must_fail = self.is_past(seat.group, seat.member, generation)
        self.ask(
            "sync",
            seat.group,
            self.c.sync(seat.group, generation, seat.member, dealt, instance=seat.instance),
            member=seat.member,
            instance=seat.instance,
            generation=generation,
            must_fail=must_fail,
        )

    def form(self, group: str, instances: Iterable[str | None], deal: int = 0) -> None:
        """These join, and all who are there. If nothing comes in between, the group is Stable then."""
        for instance in instances:
            self.join(group, instance=instance)
        for seat in self.newest_seats(group):
            self.join(group, seat.member, seat.instance, seat.protocols)
        for _ in range(4):
            self.c.sleep(51)
        self.book.hear(self)
        for seat in self.newest_seats(group):
            self.sync(seat, deal)

    def heartbeat(self, seat: Seat, shift: int = 0) -> None:
        generation = seat.generation + shift
        is_past = self.is_past(seat.group, seat.member, generation)
        error = self.c.heartbeat(seat.group, seat.member, generation, instance=seat.instance)
        assert not is_past or error not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS), error.name

    def commit(
        self,
        group: str,
        where: Iterable[tuple[str, int]],
        seat: Seat | None = None,
        shift: int = 0,
        expires_in: int | None = None,
        producer: int | None = None,
    ) -> None:
        """Of a member, or of a consumer that assigns itself; plainly, or in a transaction."""
        offset, now_ms = next(self._offsets), self.clock.now_ms()
        expire = -1 if expires_in is None else now_ms + expires_in
        values = dict.fromkeys(where, value(offset, f"ø{offset}", time=now_ms, expire=expire))
        member, instance, generation = ("", None, -1) if seat is None else (seat.member, seat.instance, seat.generation)
        generation += shift
        must_fail = self.is_past(group, member, generation)
        if producer is None:
            as_bytes = offset % 2 == 0 and expires_in is None
            answer = self.c.commit(values, group, member, generation, instance=instance, as_bytes=as_bytes)
        else:
            answer = self.c.txn_commit(producer, values, group, member, generation, instance=instance)
        self.ask("commit", group, answer, member=member, offset=offset, must_fail=must_fail)

    def end_transaction(self, partition: int, producer: int, *, is_commit: bool) -> None:
        def done() -> None:
            self.c.coordinator.handle_txn_completion(producer, (partition,), is_commit=is_commit)

        self.topic.end_transaction(partition, producer, is_commit, done)

    # Removing

    def let_go(self, going: Iterable[OffsetId]) -> None:
        """These may go now, and so may an Empty group that has nothing besides them."""
        self.may_go.update(going)
        for group in model.groups_of(self.c):
            if group.state is GroupState.EMPTY and not model.would_be_left(self, group.group_id, self.may_go):
                self.may_go.add(group.group_id)

    def expire(self) -> None:
        self.let_go(model.expired(self, RETENTION_MS))
        self.c.coordinator.cleanup_group_metadata()

    # Partitions come and go

    def elect(self, partition: int, epoch: int) -> None:
        known = self.epochs.get(partition, epoch - 1)
        if epoch > known or (epoch == known and partition not in self.led):
            self.topic.forget_markers(partition)
            self.epochs[partition] = epoch
            self.led[partition] = "loading"
        self.c.elect(partition, epoch)
        if not self._are_loads_held:
            self._loads_end()

    def resign(self, partition: int, epoch: int | None) -> None:
        known = self.epochs.get(partition)
        if epoch is None or known is None or epoch >= known:
            self.topic.forget_markers(partition)
            self.led.pop(partition, None)
            if epoch is not None:
                self.epochs[partition] = epoch
        self.c.resign(partition, epoch)

    def hold_loads(self) -> None:
        self.topic.hold_loads()
        self._are_loads_held = True

    def fail_loads(self) -> None:
        self.topic.fail_loads(CorruptLog("broken"))
        self._do_loads_fail = True

    def finish_loads(self) -> None:
        """And those that come are done at once, and well."""
        self.topic.fail_loads(None)
        self.topic.finish_loads()
        self._are_loads_held = self._do_loads_fail = False
        self._loads_end()

    def _loads_end(self) -> None:
        for partition in [partition for partition, how in self.led.items() if how == "loading"]:
            if self._do_loads_fail:
                del self.led[partition]
            else:
                self.led[partition] = "owned"

    def restart(self, *, in_order: bool, is_lost: bool) -> None:
        """Another coordinator begins. In order: whoever waits for others is told before. What was held may be lost."""
        if in_order:
            self.c.coordinator.shutdown()
            assert all(request.answer.is_done for request in self.book.waiting if request.kind in ("join", "sync"))
        if is_lost:
            self._look_again_at(self.topic.unsettled)
        self.topic.crash(is_lost=is_lost)
        self.book.hear(self)
        self.book.waiting.clear()
        self.c = Incarnation(self.topic, self.clock, self._numbers)
        led, self.led, self.epochs = self.led, {}, {}
        for partition in led:
            self.elect(partition, 0)

    # The log misbehaves

    def fail_held(self, error: ErrorCode) -> None:
        """Unless somebody has read them already: a leader does not cut its own log."""
        if all(write in self.topic.writes[write.partition] for write in self.topic.unsettled):
            self._look_again_at(self.topic.unsettled)
            self.topic.fail_held(error)

    # The end

    def end(self) -> None:
        """Nothing fails any more, nobody comes, time passes: nobody waits, no member is left, and all expires."""
        self.topic.calm()
        self.finish_loads()
        for _ in range(8):
            self.c.sleep(600_001)
        self.look()
        assert not self.book.waiting, f"never answered: {self.book.waiting}"
        for group in model.groups_of(self.c):
            assert group.state is GroupState.EMPTY, f"{group.group_id!r} is {group.state} and nobody is there"
            assert not group.pending_members, f"{group.group_id!r} waits for {group.pending_members}"
        for partition, producer in itertools.product(range(PARTITIONS), PRODUCERS):
            self.end_transaction(partition, producer, is_commit=False)
        self.look()
        self.clock.jump(4_000_000_000)
        self.expire()
        self.look()
        assert not model.groups_of(self.c), "some groups never expire"
