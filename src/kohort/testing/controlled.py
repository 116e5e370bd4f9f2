"""The broker as tests get it: the same one, with a clock that may stand still and a few more ways to make it work.

While a virtual clock stands still, requests are answered as ever, except for what needs time to pass. What is due at
once (a first rebalance without a delay, say) does not wait for somebody to move the clock: it takes a millisecond.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from kohort.broker.broker import Broker
from kohort.broker.settings import BrokerConfig
from kohort.clock import Clock, VirtualClock
from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.group.delayed import Timers
from kohort.log.files import Files


class ControlledBroker(Broker):
    """Everything here is for the broker's own thread."""

    def __init__(
        self,
        config: BrokerConfig,
        files: Files,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        on_failure: Callable[[StorageFailed], None],
    ) -> None:
        self._virtual = clock if isinstance(clock, VirtualClock) else None
        self._own_timers = Timers(clock)
        self._is_ticking = False
        self._is_over = False
        self.watchers: list[Callable[[], None]] = []
        """Called whenever something may have happened."""
        super().__init__(config, files, clock, loop, on_failure=on_failure)

    def crash(self) -> None:
        """End without a word: nobody is answered, nothing is synced or noted down."""
        self._end()
        self.housekeeper.close()
        self.maker.close()
        self._flusher_threads.close()
        for log in self.topics.directory.logs.values():
            log.abandon()

    def stop(self) -> None:
        self._is_over = True
        super().stop()

    def _end(self) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    # Time

    def wake_timers(self) -> None:
        if self._virtual is None:
            super().wake_timers()
        elif not self._is_ticking and not self._is_over and self._is_due_at(self._virtual.monotonic_ms() + 1):
            self._is_ticking = True
            self.loop.call_soon(self._tick)
        for watch in list(self.watchers):
            watch()

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """On the broker's clock."""
        if self._virtual is None:
            super().call_later(delay_ms, action)
        else:
            self._own_timers.after(delay_ms, action)
            self.wake_timers()

    def move_clock(self, clock: VirtualClock, target_ms: int) -> bool:
        """Time passes up to the target on the monotonic hand, from one timer to the next.

        False if there is more to do when what was written is safe. Timers fire when more than their time has passed:
        what is due just behind the target is taken along.
        """
        must_wait = self.config.log_flush_mode is FlushMode.ALWAYS
        ends = self._log_ends()
        while clock.monotonic_ms() < target_ms or self._is_due_at(target_ms + 1):
            due = self._next_due_ms()
            now = clock.monotonic_ms()
            clock.advance(max(0, (target_ms if due is None else min(due, max(target_ms, now + 1))) - now))
            self._fire()
            if must_wait and self._log_ends() != ends:
                return False
        self.wake_timers()
        return True

    def keep_house(self) -> "Future[None]":
        """What is otherwise done now and then; done when it is done."""
        return asyncio.run_coroutine_threadsafe(self.housekeeper.round(), self.loop)

    def _tick(self) -> None:
        self._is_ticking = False
        if self._virtual is not None and not self._is_over:
            self._virtual.advance(1)
            self._fire()
            self.wake_timers()

    def _fire(self) -> None:
        for timers in self._all_timers():
            timers.run_due()

    def _all_timers(self) -> Iterable[Timers]:
        return (self.groups.timers, self.transactions.timers, self._own_timers)

    def _next_due_ms(self) -> int | None:
        return min(filter(None, (timers.next_due_ms() for timers in self._all_timers())), default=None)

    def _is_due_at(self, ms: int) -> bool:
        due = self._next_due_ms()
        return due is not None and due <= ms

    # Logs

    def compact(self, topic: str | None) -> "Future[int]":
        """Clean compacted logs up to their ends; tells by how many bytes they shrank."""

        async def clean_all() -> int:
            shrunk = 0
            for (name, _), log in list(self.topics.directory.logs.items()):
                if topic in (None, name) and "compact" in log.config.cleanup_policy:
                    log.roll()
                    before = log.size
                    await self.housekeeper.clean(log)
                    shrunk += before - log.size
            return shrunk

        return asyncio.run_coroutine_threadsafe(clean_all(), self.loop)

    def expire(self) -> "Future[None]":
        """Whatever is past its time goes now: offsets, groups, transactions, transactional ids, segments."""
        self.groups.cleanup_group_metadata()
        self.transactions.abort_timed_out_transactions()
        self.transactions.remove_expired_transactional_ids()
        self.wake_timers()
        return self.keep_house()

    def when_safe(self) -> "Future[bool]":
        """Done when everything is told to be safe that stands in the logs now; False if more was written meanwhile."""
        logs = list(self.topics.directory.logs.values())
        ends = self._log_ends()
        waiting = len(logs)
        safe: Future[bool] = Future()
        if not logs:
            safe.set_result(True)

        def told(_: object) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                safe.set_result(self._log_ends() == ends)

        for log in logs:
            self.durable.then(log, log.log_end_offset, told)
        return safe

    def _log_ends(self) -> int:
        return sum(log.log_end_offset for log in self.topics.directory.logs.values())

    # Coordinators

    def resign(self, partition: int) -> None:
        """Somebody else coordinates the groups of this partition now."""
        self.groups.on_resignation(partition, self._group_epoch(partition) + 1)
        self.wake_timers()

    def return_to(self, partition: int) -> None:
        """They are ours again, unless they are already: a restart has brought them back."""
        if partition not in self.groups.manager.partitions:
            self.groups.on_election(partition, self._group_epoch(partition) + 1)
            self.wake_timers()

    def resign_transactions(self, partition: int) -> None:
        self.transactions.on_resignation(partition, self.transactions.manager.epoch_of(partition) + 1)
        self.wake_timers()

    def return_to_transactions(self, partition: int) -> None:
        if partition not in self.transactions.manager.partitions:
            self.transactions.on_election(partition, self.transactions.manager.epoch_of(partition) + 1)
            self.wake_timers()

    def _group_epoch(self, partition: int) -> int:
        epoch = self.groups.manager.epoch_of(partition)
        return 0 if epoch is None else epoch
