"""`Broker`: what a test starts, talks to with any Kafka client, and torments."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from kohort.broker.setting_kinds import text_of
from kohort.testing.controlled import ControlledBroker
from kohort.testing.faults import Fault, When, drop, error_of, fail_with, hold
from kohort.testing.groups import Group, looked_at
from kohort.testing.life import Life, Settings
from kohort.testing.moves import Moved, move_groups, move_transactions

_PATIENCE_S = 30.0


class Broker(Life):
    """A broker on a free port of this machine, from `with` to the end of its block.

    `data` is a directory to keep everything in; without one it is kept in memory, for as long as this object lives.
    `settings` carry Kafka's names. The clock is the real one, or one that only moves when it is told to. With
    `subprocess` the broker is `kohort serve` in a process of its own, where a test can start, kill and restart it but
    not get at its clock, its requests and its groups. With `http` there are metrics, health and the live page too, at
    `http_url`.
    """

    # Looking and waiting

    def groups(self) -> dict[str, Group]:
        """All groups that this broker coordinates, by their ids, as they are now."""
        return self._call(_groups)

    def wait_until(
        self, condition: Callable[[dict[str, Group]], bool], timeout_s: float = _PATIENCE_S
    ) -> dict[str, Group]:
        """Wait until the groups are as wanted; `TimeoutError` if that does not happen. Returns them as they are then.

        The condition is asked in the broker's thread each time that something has happened.
        """
        found: Future[dict[str, Group]] = Future()

        def look(broker: ControlledBroker) -> None:
            if found.done():
                return
            groups = _groups(broker)
            try:
                if condition(groups):
                    found.set_result(groups)
            except Exception as error:  # noqa: BLE001 - whoever waits hears of it, whatever it is
                found.set_exception(error)

        def watch(broker: ControlledBroker) -> Callable[[], None]:
            watcher = partial(look, broker)
            broker.watchers.append(watcher)
            watcher()
            return watcher

        watcher = self._call(watch)
        try:
            return found.result(timeout_s)
        finally:
            if self.is_running:
                self._call(lambda broker: broker.watchers.remove(watcher) if watcher in broker.watchers else None)

    def wait_for_group(
        self,
        group_id: str,
        *,
        state: str | None = "Stable",
        members: int | None = None,
        timeout_s: float = _PATIENCE_S,
    ) -> Group:
        """Wait until a group is in a state, and has so many members if that is said."""

        def is_so(groups: dict[str, Group]) -> bool:
            group = groups.get(group_id)
            if group is None:
                return False
            return state in (None, group.state) and members in (None, len(group.members))

        return self.wait_until(is_so, timeout_s)[group_id]

    # Doing

    def create_topic(self, name: str, partitions: int = 1, settings: Settings | None = None) -> None:
        """A new topic, with settings under Kafka's names."""
        told = {setting: text_of(value) for setting, value in (settings or {}).items()}
        self._call(lambda broker: broker.create_topic(name, partitions, told))

    def compact(self, topic: str | None = None) -> int:
        """Clean all compacted topics, or one, up to the last record. Returns how many bytes that has saved."""
        return self._call(lambda broker: broker.compact(topic)).result(_PATIENCE_S)

    def expire(self) -> None:
        """Remove now whatever is past its time: offsets, groups, transactions, records beyond their retention."""
        self._call(lambda broker: broker.expire()).result(_PATIENCE_S)
        self._settle()

    def move_coordinator(self, group: str | int | None = None, *, transactional_id: str | None = None) -> Moved:
        """Take a coordinator away: that of a group, of a partition of `__consumer_offsets`, or of a transactional id.

        Its clients are told that it is not here, and whoever asks for it that there is none, until it is moved `back`;
        as a context manager it comes back with the end of the block.
        """
        if (group is None) == (transactional_id is None):
            raise ValueError("move the coordinator of a group or of a transactional id")
        if transactional_id is not None:
            return move_transactions(self._call, self._settle, self._faults, transactional_id)
        assert group is not None
        return move_groups(self._call, self._settle, self._faults, group)

    # Faults

    def fail_next(
        self,
        api: str | int,
        error: str | int,
        *,
        times: int | None = 1,
        applied: bool = False,
        when: When | None = None,
        client_id: str | None = None,
    ) -> Fault:
        """Answer the next requests of an API with an error, without doing what they ask unless it is to be `applied`.

        `times` None: all, until the fault is cancelled. `when` is asked with each request, `client_id` must fit.
        """
        self._check_in_process()
        action = fail_with(error_of(error), applied=applied)
        return self._faults.order(api, action, times=times, when=when, client_id=client_id)

    def drop_next(
        self,
        api: str | int,
        *,
        times: int | None = 1,
        applied: bool = False,
        when: When | None = None,
        client_id: str | None = None,
    ) -> Fault:
        """Close the connection in place of an answer, before or after what is asked was `applied`."""
        self._check_in_process()
        return self._faults.order(api, drop(applied=applied), times=times, when=when, client_id=client_id)

    def delay_next(
        self,
        api: str | int,
        ms: int,
        *,
        times: int | None = 1,
        when: When | None = None,
        client_id: str | None = None,
    ) -> Fault:
        """Look at the next requests of an API so much later, by the broker's clock."""
        self._check_in_process()
        later = hold(lambda action: self._call(lambda broker: broker.call_later(ms, action)))
        return self._faults.order(api, later, times=times, when=when, client_id=client_id)

    def hold_next(
        self, api: str | int, *, times: int | None = 1, when: When | None = None, client_id: str | None = None
    ) -> Fault:
        """Do not look at the next requests of an API until the fault is told to `release` them."""
        self._check_in_process()
        return self._faults.order(api, hold(), times=times, when=when, client_id=client_id)


def _groups(broker: ControlledBroker) -> dict[str, Group]:
    return {group.group_id: looked_at(group) for group in broker.groups.manager.current_groups}
