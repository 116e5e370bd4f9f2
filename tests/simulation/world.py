"""One run of one seed: a broker through its lives, the clients that use it, and the faults that befall both."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

from kohort.broker.connection import Connection
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.config import FlushMode
from kohort.errors import KohortError, StorageFailed
from kohort.group.requests import GroupId
from kohort.log.flusher import Flusher
from kohort.records.garbage import garbage_collector_paused
from kohort.testing.controlled import ControlledBroker
from tests.simulation import actors, members, producers
from tests.simulation.client import Client
from tests.simulation.disk import DATA, Machine
from tests.simulation.folded import committed_offsets
from tests.simulation.history import Away, Expired, Key, Outcome, Violation
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import Broken, Line

START_MS = 1_700_000_000_000
_SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.segment.bytes": "3000",
    "transaction.state.log.segment.bytes": "3000",
    "log.cleaner.backoff.ms": "3000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.cleaner.delete.retention.ms": "2000",
    "offsets.retention.minutes": "60",
    "log.segment.delete.delay.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}
_CONFIG = with_settings(BrokerConfig(data=DATA, log_flush_mode=FlushMode.ALWAYS), _SETTINGS)
_JOURNAL_BYTES = 4096
_PAST_RETENTION_MS = 61 * 60_000
GROUPS = ("alone", "two", "three")


class SimulatedClock:
    """The loop's time, and a time of day that somebody sets now and then."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.shift_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.shift_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)


class NoThreads:
    """In the place of the flusher's threads: the loop syncs, when the seed wants it."""

    def __init__(self, flusher: Flusher, *_: object) -> None:
        self.flusher = flusher

    def close(self) -> None:
        self.flusher.stop()
        self.flusher.run_once()


class Life:
    """A broker from its start to its end."""

    def __init__(self, world: "World", *, fault_within: int | None) -> None:
        self._world = world
        self._loop = world.loop
        self.failures: list[StorageFailed] = []
        files = world.machine.boot(fault_within=fault_within)
        self.broker = ControlledBroker(_CONFIG, files, world.clock, world.loop, on_failure=self.failures.append)
        self.broker.housekeeper._pace.is_hurried = True
        self.broker.turns.never_end()
        if world.seed % 2:
            self.broker.short_way.open()
        self.server = Server(self.broker, world.loop)
        self._sync: asyncio.TimerHandle | None = None
        self.is_over = False
        self._looks = (self._look_for_syncs, self._look_for_loads)
        world.loop.before_waiting.extend(self._looks)
        self.broker.start(9092)
        self.broker.ensure_offsets_topic()
        self.broker.ensure_transaction_topic()
        if world.transaction_epoch:  # whoever elects leaders remembers how often
            self.broker.transactions.on_election(0, world.transaction_epoch)
        if self.broker.topics.get(actors.TOPIC) is None:
            self.broker.create_topic(actors.TOPIC, actors.PARTITIONS, {})

    def connect(self) -> Line:
        if self.is_over:
            raise Broken
        line = Line(self._loop, self._world.random, Connection(self.server))
        self._world.lines.append(line)
        return line

    def end(self) -> None:
        """Every connection breaks, and nothing more is done; not a byte is written."""
        self.is_over = True
        for look in self._looks:
            self._loop.before_waiting.remove(look)
        if self._sync is not None:
            self._sync.cancel()
        for line in self._world.lines:
            line.break_off()
        self._world.lines.clear()
        _let_go(self.broker)

    def _look_for_loads(self) -> None:
        for group in GROUPS:
            if self.broker.groups.manager.is_group_loading(GroupId(group)):
                self._world.actors.loading[group] = self._loop.time()

    def _look_for_syncs(self) -> None:
        if self._sync is None and self.broker.flusher._work():
            self._sync = self._loop.call_later(self._loop.some_time(), self._run_syncs)

    def _run_syncs(self) -> None:
        self._sync = None
        if not self.is_over:
            self.broker.flusher.run_next()
            if self.broker.flusher.failure is not None and not self.failures:
                self.failures.append(self.broker.flusher.failure)


class World:
    """Everything of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random)
        self.clock = SimulatedClock(self.loop)
        self.machine = Machine(self.random, self.loop.be_held_up)
        self.ledger = Ledger()
        self.lines: list[Line] = []
        self.life: Life | None = None
        self.unhandled: list[str] = []
        self.transaction_epoch = 0
        self.counts = {
            "power cuts": 0,
            "kills": 0,
            "stops": 0,
            "disk faults": 0,
            "moves": 0,
            "jumps": 0,
            "cuts": 0,
            "cleanings": 0,
            "expiries": 0,
        }
        self._trace = hashlib.sha256()
        self.loop.set_exception_handler(self._note)
        self.actors = actors.Actors(self.random, self.ledger, self.loop.time, self._new_client)

    @property
    def trace(self) -> str:
        """The same for the same run."""
        return self._trace.hexdigest()

    def told(self) -> dict[str, int]:
        """How much has happened."""
        ok = sum(write.outcome is Outcome.OK for write in self.ledger.writes)
        heard = {"answers": self.actors.answered, "commits": len(self.ledger.writes), "acknowledged": ok}
        return self.counts | heard | {"offsets read": len(self.ledger.reads), "shares": len(self.ledger.syncs)}

    def run(self) -> "World":
        with _nothing_by_chance(self.random):
            asyncio.set_event_loop(self.loop)
            try:
                self.loop.run_until_complete(self._live())
            finally:
                asyncio.set_event_loop(None)
                self.loop.close()
        if self.unhandled:
            raise Violation(f"errors that nobody handled: {self.unhandled[:3]}")
        for entry in (*self.ledger.writes, *self.ledger.reads, *self.ledger.syncs, *self.ledger.commits):
            self._trace.update(repr(entry).encode())
        self.ledger.check()
        return self

    def _note(self, _: object, context: dict[str, object]) -> None:
        error = context.get("exception")
        if not isinstance(error, KohortError):
            self.unhandled.append(f"{context.get('message')}: {error!r}")

    def _new_client(self, name: str) -> Client:
        return Client(name, self._connect)

    def _connect(self) -> Line:
        if self.life is None:
            raise Broken
        return self.life.connect()

    async def _live(self) -> None:
        self._boot()
        groups = list(GROUPS)
        crowd = [
            actors.committer(self.actors, "c-1", "alone", 6),
            actors.committer(self.actors, "c-2", "alone", 6),
            producers.transactor(self.actors, "t-1", "alone", 4),
            producers.transactor(self.actors, "t-2", "two", 4),
            actors.remover(self.actors, "r-1", ["alone", "two"], 2),
            actors.reader(self.actors, "look-1", groups, 6),
            *(members.member(self.actors, f"m-{n}", "three", 12) for n in range(self.random.randint(1, 2))),
            members.member(self.actors, "s-1", "three", 12, instance="s"),
            members.member(self.actors, "s-2", "three", 4, instance="s"),
        ]
        tasks = [self.loop.create_task(one) for one in crowd]
        fate = self.loop.create_task(self._faults())
        for task in tasks:
            await task
        fate.cancel()
        if self.life is None:
            self._boot()
        await self._look_at_the_end(groups)

    def _boot(self, *, may_fail: bool = True) -> None:
        """Start a broker; a disk that fails at the start is tried again without the fault."""
        fault = self.random.randrange(20, 600) if may_fail and self.random.random() < 0.3 else None
        try:
            self.life = Life(self, fault_within=fault)
        except StorageFailed:
            self._count_faults()
            self.machine.lose_power()
            self.life = Life(self, fault_within=None)

    async def _faults(self) -> None:
        """Something happens every few seconds."""
        while True:
            await asyncio.sleep(self.random.expovariate(1 / 2.0))
            assert self.life is not None
            if self.life.failures:
                await self._restart(self.random.choice((self.machine.lose_power, self.machine.power_off)))
                continue
            match self.random.choice(
                ("power", "kill", "stop", "move", "jump", "cut", "cut", "clean", "house", "expire")
            ):
                case "power":
                    self.counts["power cuts"] += 1
                    await self._restart(self.machine.lose_power)
                case "kill":
                    self.counts["kills"] += 1
                    await self._restart(self.machine.power_off)
                case "stop":
                    self.counts["stops"] += 1
                    self.life.broker.stop()
                    await self._restart(self.machine.power_off)
                case "move":
                    self.counts["moves"] += 1
                    await self._move(self.life)
                case "jump":
                    self.counts["jumps"] += 1
                    self.clock.shift_ms += self.random.choice((-60_000, -1000, 1000, 60_000))
                case "cut":
                    self.counts["cuts"] += 1
                    self._cut_a_line()
                case "clean":
                    self.counts["cleanings"] += 1
                    self.life.broker.compact(None)
                case "expire":
                    self.counts["expiries"] += 1
                    self.clock.shift_ms += _PAST_RETENTION_MS
                    self.ledger.expiries += [Expired(group, self.loop.time()) for group in GROUPS]
                    self.life.broker.groups.cleanup_group_metadata()
                    self.life.broker.wake_timers()
                case "house":
                    self.ledger.cleanups.append(self.loop.time())
                    self.life.broker.groups.cleanup_group_metadata()
                    self.life.broker.wake_timers()

    def _end_life(self, lose: Callable[[], None]) -> None:
        """The broker is gone, and its disk is left as somebody finds it."""
        assert self.life is not None
        life, self.life = self.life, None
        self._count_faults()
        life.end()
        lose()

    def _count_faults(self) -> None:
        self.counts["disk faults"] += self.machine.hits > 0

    async def _restart(self, lose: Callable[[], None]) -> None:
        self._end_life(lose)
        await asyncio.sleep(self.random.uniform(0.0, 2.0))
        self._boot()

    async def _move(self, life: Life) -> None:
        partition = self.random.randrange(3)
        if partition == 2:
            self.transaction_epoch += 2
            life.broker.transactions.on_resignation(0, self.transaction_epoch - 1)
            await asyncio.sleep(self.random.uniform(0.0, 1.0))
            life.broker.transactions.on_election(0, self.transaction_epoch)
            life.broker.wake_timers()
            return
        life.broker.resign(partition)
        began = self.loop.time()
        await asyncio.sleep(self.random.uniform(0.0, 1.0))
        groups = [group for group in GROUPS if life.broker.groups.partition_for(GroupId(group)) == partition]
        self.ledger.away += [Away(group, began, self.loop.time()) for group in groups]
        life.broker.return_to(partition)

    def _cut_a_line(self) -> None:
        alive = [line for line in self.lines if not line.is_broken]
        if alive:
            line = self.random.choice(alive)
            if self.random.random() < 0.3:
                line.is_silent = True
            else:
                line.break_off()

    async def _look_at_the_end(self, groups: list[str]) -> None:
        """After a power cut everything is read, by two who do not know of each other: a client, and a plain fold."""
        for is_again in (False, True):
            self._end_life(self.machine.lose_power)
            self._boot(may_fail=False)
            await asyncio.sleep(20.0)  # transactions that nobody ends have timed out, and others have their markers
            if not is_again:
                self.ledger.settle(self.loop.time())
            client = self._new_client("end")
            for group in groups:
                for _ in range(20):
                    if await actors.look(self.actors, client, group):
                        break
                    await asyncio.sleep(1.0)
                else:
                    raise Violation(f"{group} cannot be read any more")
            client.hang_up()
        self._end_life(self.machine.power_off)
        self._compare(committed_offsets(self.machine.files(), GROUPS))

    def _compare(self, folded: dict[Key, int]) -> None:
        """What a client has read last is what stands in the log."""
        latest = {read.key: read.offset for read in self.ledger.reads}
        for key, offset in latest.items():
            if folded.get(key) != offset:
                raise Violation(f"{key}: the broker says {offset}, its log {folded.get(key)}")


def _let_go(broker: ControlledBroker) -> None:
    """A process is gone: whatever it still had in mind is not done."""
    broker._end()
    if broker.housekeeper._life is not None:
        broker.housekeeper._life.cancel()
    broker.housekeeper._thread.shutdown(wait=False, cancel_futures=True)
    for task in broker.maker._tasks:
        task.cancel()
    broker.maker._threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _nothing_by_chance(random: Random) -> Iterator[None]:
    """What the broker takes from chance or from threads comes from the seed."""
    ids = Random(random.random())
    with (
        garbage_collector_paused(),  # what ends when it is collected may still do something
        patch("os.urandom", ids.randbytes),
        patch("kohort.broker.broker.FlusherThreads", NoThreads),
        patch("kohort.log.journal.FULL_BYTES", _JOURNAL_BYTES),
    ):
        yield
