"""The broker: topics on a disk, the coordinators on top of them, and the clock that drives both."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kohort.broker.call import Call
from kohort.broker.coordinator_logs import CoordinatorLog, LocalMarkers
from kohort.broker.durable import Durable
from kohort.broker.fetch_sessions import FetchSessions
from kohort.broker.fetch_waiting import LongPolls
from kohort.broker.housekeeping import Housekeeper
from kohort.broker.leading import leader_epoch
from kohort.broker.producer_ids import ProducerIds
from kohort.broker.quotas.client_quotas import ClientQuotas
from kohort.broker.security.authorizer import Authorizer
from kohort.broker.security.security_log import SecurityLog
from kohort.broker.security.users import Users
from kohort.broker.settings import BrokerConfig, topic_config, with_changes
from kohort.broker.settings_file import Changes, SettingsFile
from kohort.broker.short_way import ShortWay
from kohort.broker.storage import LocalStorage, Storage
from kohort.broker.topic_maker import TopicMaker
from kohort.broker.topics import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_TOPIC, Topic, Topics
from kohort.broker.turns import Turns
from kohort.clock import Clock
from kohort.config import LogConfig
from kohort.errors import ClientError, CorruptLog, StorageFailed
from kohort.group.coordinator import GroupCoordinator
from kohort.log.cleaner import Cleaner
from kohort.log.files import Files
from kohort.log.flusher import SYNCS_AT_A_TIME, Flusher, FlusherThreads
from kohort.log.names import TopicPartition
from kohort.log.partition import Log
from kohort.log.replaying import replay_log
from kohort.transaction.coordinator import TransactionCoordinator
from kohort.transaction.markers import TxnMarker
from kohort.transaction.replaying import replay_transactions


class Broker:
    """One broker that leads everything it has."""

    def __init__(
        self,
        config: BrokerConfig,
        files: Files,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        on_failure: Callable[[StorageFailed], None],
        storage: Storage | None = None,
    ) -> None:
        if storage is None:
            storage = LocalStorage(files, config.data, broker_id=config.broker_id, flush_mode=config.log_flush_mode)
        self._settings_file = SettingsFile(storage.documents, config.broker_id)
        self.config = config = _as_changed(config, self._settings_file)
        self.clock = clock
        self.loop = loop
        self._files = files
        self.topics = Topics(storage, clock, self._config_of)
        self.producer_ids = ProducerIds(storage.documents, self.topics.directory.logs.values())
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, clock)
        self.long_polls = LongPolls(self, loop)
        self.turns = Turns(loop)
        self.flusher = Flusher(config.log_flush_mode, clock, keeper=self.topics.directory.keeper)
        self._flusher_threads = FlusherThreads(self.flusher, self._fail_later, SYNCS_AT_A_TIME)
        self._on_failure = on_failure
        self._cleaner = Cleaner(
            files, self.topics.directory.path, clock, dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size
        )
        self.housekeeper = Housekeeper(
            self.topics.directory, self._cleaner, loop, lambda: self.config.log_cleaner_backoff_ms
        )
        self.maker = TopicMaker(self, self._lead)
        self._readers: dict[Log, list[Callable[[], None]]] = {}
        self.durable = Durable(self.flusher, loop, self._on_progress, self.wake_timers)
        self.security_log = SecurityLog(self.topics, self.durable, clock.now_ms)
        self.authorizer = Authorizer.configured(config, self.security_log)
        """Who decides what somebody may do; None: everybody may do everything."""
        self.quotas = ClientQuotas(
            self.security_log, clock, windows=config.quota_window_num, window_s=config.quota_window_size_seconds
        )
        self.users = Users(self.security_log)
        self.host, self.port = config.host, config.port
        self.groups = self._make_groups()
        self.short_way = ShortWay(config.group)
        self.transactions = self._make_transactions()
        self._timer: asyncio.Handle | None = None
        self._timer_due_ms = 0

    def _make_groups(self) -> GroupCoordinator:
        """A topic that exists already keeps its number of partitions: it decides where groups live."""
        config, offsets = self.config.group, self.topics.get(OFFSETS_TOPIC)
        if offsets is not None:
            config = replace(config, offsets_topic_num_partitions=offsets.partition_count)
        log = CoordinatorLog(
            OFFSETS_TOPIC, self.topics, self.durable, lambda log: replay_log(log, config.offsets_load_buffer_size)
        )
        return GroupCoordinator(config, self.clock, log)

    def _make_transactions(self) -> TransactionCoordinator:
        config, state = self.config.transaction, self.topics.get(TRANSACTION_TOPIC)
        if state is not None:
            config = replace(config, transaction_state_log_num_partitions=state.partition_count)
        log = CoordinatorLog(
            TRANSACTION_TOPIC,
            self.topics,
            self.durable,
            lambda log: replay_transactions(log, config.transaction_state_log_load_buffer_size),
        )
        markers = LocalMarkers(self.topics, self.durable, self.clock.now_ms, self._on_offsets_marker)
        return TransactionCoordinator(config, self.clock, log, markers, self.producer_ids.new)

    def _on_offsets_marker(self, marker: TxnMarker) -> None:
        """A transaction has ended in a partition of the offsets topic."""
        self.groups.handle_txn_completion(marker.producer_id, (marker.partition.partition,), is_commit=marker.is_commit)

    def start(self, port: int) -> None:
        """The first listener is there, on this port: begin to coordinate."""
        self.port = port
        self.groups.startup()
        self.transactions.startup()
        self.housekeeper.start()
        self.resume()

    def isolate(self) -> None:
        """It is not known whether this broker still owns what it has: it coordinates nothing until it is."""
        for topic in self._coordinators_topics():
            self._give_up(topic)

    def resume(self) -> None:
        """It does: begin again with what is in the logs."""
        for topic in self._coordinators_topics():
            self._lead(topic)
        self.wake_timers()

    def _coordinators_topics(self) -> list[Topic]:
        return [topic for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC) if (topic := self.topics.get(name)) is not None]

    def stop(self) -> None:
        """Answer whoever waits, sync everything, close the logs."""
        if self._timer is not None:
            self._timer.cancel()
        self.housekeeper.close()
        self.maker.close()
        self.turns.close()
        self.transactions.shutdown()
        self.groups.shutdown()
        self.long_polls.close()
        self.durable.hand_over()
        self._flusher_threads.close()
        self.topics.directory.close()

    def _fail_later(self, failure: StorageFailed) -> None:
        """Called by the flusher's thread."""
        self.loop.call_soon_threadsafe(self._on_failure, failure)

    def node_for(self, call: Call) -> dict[str, Any]:
        """This broker as whoever asks is told of it."""
        host, port = call.told_address or (self.host, self.port)
        return {"node_id": self.config.broker_id, "host": host, "port": port, "rack": None}

    def change_settings(self, changes: Changes, *, validate_only: bool = False) -> None:
        """What is said about settings while the broker runs becomes this; `BadSetting` if that cannot be."""
        config = with_changes(self.config, changes.own, changes.for_all)
        for topic in self.topics:
            _topic_config(config, topic.name, topic.settings)
        if not validate_only:
            self._settings_file.write(changes)
            self.config = config
            self.topics.refresh_configs()
            self._cleaner.dedupe_buffer_size = config.log_cleaner_dedupe_buffer_size

    # Topics

    def _config_of(self, name: str, settings: Mapping[str, str]) -> LogConfig:
        return _topic_config(self.config, name, settings)

    def ensure_offsets_topic(self) -> None:
        """At once; otherwise it is made when the first client asks for a coordinator, as Kafka does."""
        self.maker.ensure_at_once(OFFSETS_TOPIC)

    def ensure_transaction_topic(self) -> None:
        """At once; otherwise it is made when the first transactional producer asks for its coordinator."""
        self.maker.ensure_at_once(TRANSACTION_TOPIC)

    @property
    def offsets_partitions(self) -> int:
        """How many partitions the coordinator spreads its groups over."""
        return self.groups.manager.config.offsets_topic_num_partitions

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> Topic:
        """A new topic, at once; the coordinator hears of its own."""
        topic = self.topics.create(name, partitions, settings)
        self._lead(topic)
        return topic

    def delete_topic(self, topic: Topic) -> None:
        """It goes, and with it what groups have committed for it. Whoever waits for its records is woken."""
        partitions = [TopicPartition(topic.name, number) for number in range(topic.partition_count)]
        logs = [log for partition in partitions if (log := self.topics.log(*partition)) is not None]
        self._give_up(topic)
        try:
            self.topics.delete(topic)
        except StorageFailed:
            if self.topics.get(topic.name) is not None:  # it could not even be said that it shall go
                self._lead(topic)
            raise
        finally:
            for log in logs:
                self._on_progress(log)
        self._cleaner.forget(partitions)
        self.groups.handle_deleted_partitions(partitions)

    def _lead(self, topic: Topic) -> None:
        """If it is a coordinator's, the coordinator takes over what is in it."""
        elect = {
            OFFSETS_TOPIC: self.groups.on_election,
            TRANSACTION_TOPIC: self.transactions.on_election,
        }.get(topic.name)
        for partition in range(topic.partition_count if elect else 0):
            log = self.topics.log(topic.name, partition)
            if log is not None and elect is not None:
                elect(partition, leader_epoch(log))

    def _give_up(self, topic: Topic) -> None:
        """If it is a coordinator's, the coordinator lets go of what is in it."""
        resign = {
            OFFSETS_TOPIC: self.groups.on_resignation,
            TRANSACTION_TOPIC: self.transactions.on_resignation,
        }.get(topic.name)
        if resign is not None:
            for partition in range(topic.partition_count):
                resign(partition, None)

    # Waiting for records

    def when_readable(self, log: Log, wake: Callable[[], None]) -> None:
        """Call when more of a log may be read; once for each time it is asked."""
        self._readers.setdefault(log, []).append(wake)

    def forget_reader(self, log: Log, wake: Callable[[], None]) -> None:
        """Nobody waits for it any more."""
        waiting = self._readers.get(log)
        if waiting is not None and wake in waiting:
            waiting.remove(wake)
            if not waiting:
                del self._readers[log]

    def _on_progress(self, log: Log) -> None:
        for wake in self._readers.pop(log, ()):
            wake()

    # Time

    def call_later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """On the broker's clock."""
        self.loop.call_later(delay_ms / 1000, action)

    def wake_timers(self) -> None:
        """Something may have been scheduled: be called when it is due."""
        due, other = self.groups.timers.next_due_ms(), self.transactions.timers.next_due_ms()
        if due is None or (other is not None and other < due):
            due = other
        if due is None or (self._timer is not None and self._timer_due_ms <= due):
            return
        when = self.loop.time() + max(0, due - self.clock.monotonic_ms()) / 1000
        if self._timer is not None:
            self._timer.cancel()
        # What is due already is no timer to uvloop: its handle does not say when.
        self._timer, self._timer_due_ms = self.loop.call_at(when, self._run_timers), due

    def _run_timers(self) -> None:
        self._timer = None
        self.groups.timers.run_due()
        self.transactions.timers.run_due()
        self.wake_timers()


def _as_changed(config: BrokerConfig, file: SettingsFile) -> BrokerConfig:
    """The settings with what was said while an earlier run lasted."""
    own, for_all = file.read()
    try:
        return with_changes(config, own, for_all)
    except ClientError as error:
        raise CorruptLog(str(error), path=file.path) from error


def _topic_config(config: BrokerConfig, name: str, settings: Mapping[str, str]) -> LogConfig:
    base = config.log
    if name in INTERNAL_TOPICS:
        base = replace(base, cleanup_policy=frozenset({"compact"}))
    return topic_config(base, settings)
