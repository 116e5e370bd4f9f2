"""Fetches that wait until there is enough to read.

A fetch reads at once. If that gives fewer bytes than it wants, it is put aside and hears when one of its logs may be
read further; when enough has come together, or its time is over, it reads again from the start and answers whatever
there is. An error ends the wait at once, except that a partition that does not exist, or not for whoever asks, is told
of with the others. Permission is needed when the wait is over, not only when it begins.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kohort.broker.fetch_sessions import FetchKey, Found, TopicIdPartition, Wanted
from kohort.broker.leading import NO_EPOCH_END, EpochEnd, UnknownTopicId, check_topic_id, end_of_epoch, led_log
from kohort.broker.topics import Topics
from kohort.errors import ClientError, CorruptLog, ErrorCode, OffsetOutOfRange, StorageFailed
from kohort.log.answers import ReadUpTo
from kohort.log.failures import storage_errors
from kohort.log.names import TopicPartition
from kohort.log.partition import Log

if TYPE_CHECKING:
    from kohort.broker.broker import Broker

Results = Mapping[FetchKey, Found]

_UNREADABLE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """What is wanted, and how much of it how soon."""

    wanted: Mapping[FetchKey, Wanted]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    up_to: ReadUpTo
    find_refused: Callable[[], Container[str | None]] | None = None
    """Finds the topics that whoever asks may not read now; it is asked each time that they are read."""


def read_all(topics: Topics, fetch: Fetch) -> dict[FetchKey, Found]:
    """Read each partition in turn, at most `max_bytes` together, but of the first that has any at least one batch."""
    results: dict[FetchKey, Found] = {}
    room, is_first = fetch.max_bytes, True
    refused = () if fetch.find_refused is None else fetch.find_refused()
    for partition, wanted in fetch.wanted.items():
        if refused and topic_of(partition, wanted) in refused:
            results[partition] = Found(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            continue
        found = _read(topics, partition, wanted, fetch.up_to, min(wanted.max_bytes, room), min_one=is_first)
        results[partition] = found
        if found.records:
            is_first = False
            room = max(0, room - len(found.records))
    return results


def _read(
    topics: Topics, partition: FetchKey, wanted: Wanted, up_to: ReadUpTo, max_bytes: int, *, min_one: bool
) -> Found:
    try:
        log = led_log(topics, _named(topics, partition, wanted), wanted.leader_epoch)
        with storage_errors(log.path):
            if (end := _diverging(log, wanted)) is not None:
                return Found(
                    high_watermark=log.high_watermark,
                    last_stable_offset=log.last_stable_offset,
                    log_start_offset=log.log_start_offset,
                    diverging=end,
                )
            read = log.read(wanted.offset, max(0, max_bytes), min_one=min_one, up_to=up_to)
    except (ClientError, StorageFailed) as refusal:
        return Found(refusal.code)
    except CorruptLog:
        return Found(ErrorCode.CORRUPT_MESSAGE)
    return Found(
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        records=read.records,
        next_offset=read.next_offset,
        aborted=read.aborted_transactions if up_to is ReadUpTo.LAST_STABLE_OFFSET else None,
    )


def _named(topics: Topics, partition: FetchKey, wanted: Wanted) -> TopicPartition:
    """The partition by the name of its topic, which must be the one that is meant."""
    if not isinstance(partition, TopicIdPartition):
        return partition
    if wanted.topic is None:
        raise UnknownTopicId(f"there is no topic with the id {partition.topic_id}")
    check_topic_id(topics, wanted.topic, partition.topic_id)
    return TopicPartition(wanted.topic, partition.partition)


def topic_of(partition: FetchKey, wanted: Wanted) -> str | None:
    """The name of the topic that a fetch wants, if it is known."""
    return wanted.topic if isinstance(partition, TopicIdPartition) else partition.topic


def log_of(topics: Topics, partition: FetchKey, wanted: Wanted) -> Log | None:
    """The log that a fetch wants, if there is one."""
    name = topic_of(partition, wanted)
    return None if name is None else topics.log(name, partition.partition)


def _diverging(log: Log, wanted: Wanted) -> EpochEnd | None:
    """Where a reader has left our log: what it read last is not what stands here before its offset (KIP-595)."""
    if wanted.last_fetched_epoch < 0:
        return None
    end = end_of_epoch(log, wanted.last_fetched_epoch)
    if end == NO_EPOCH_END or wanted.offset < log.log_start_offset:
        raise OffsetOutOfRange(f"{log.topic_partition}: nothing is known of epoch {wanted.last_fetched_epoch}")
    return end if end.epoch < wanted.last_fetched_epoch or end.offset < wanted.offset else None


def _limit(log: Log, up_to: ReadUpTo) -> int:
    return log.last_stable_offset if up_to is ReadUpTo.LAST_STABLE_OFFSET else log.high_watermark


class LongPolls:
    """The fetches of a broker, those that wait among them."""

    def __init__(self, broker: "Broker", loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.loop = loop
        self.waiting: set[_LongPoll] = set()
        self._is_closed = False

    def fetch(self, fetch: Fetch, done: Callable[[Results], None]) -> None:
        """`done` hears what was found, now or later."""
        results = read_all(self.broker.topics, fetch)
        if self._is_closed or fetch.max_wait_ms <= 0 or self._is_enough(fetch, results):
            done(results)
        else:
            self.waiting.add(_LongPoll(self, fetch, results, done))

    def close(self) -> None:
        """Answer everybody who waits; nobody will wait any more."""
        self._is_closed = True
        for poll in list(self.waiting):
            poll.finish()

    def _is_enough(self, fetch: Fetch, results: Results) -> bool:
        known = {partition: found for partition, found in results.items() if found.error not in _UNREADABLE}
        return (
            not known
            or sum(len(found.records) for found in known.values()) >= fetch.min_bytes
            or any(found.error is not ErrorCode.NONE or found.diverging is not None for found in known.values())
            or any(self._is_behind(partition, fetch) for partition in known)
        )

    def _is_behind(self, partition: FetchKey, fetch: Fetch) -> bool:
        """One read gives no more than is in a segment; a reader that is not in the last one need not wait for more."""
        log = log_of(self.broker.topics, partition, fetch.wanted[partition])
        if log is None:
            return True
        return fetch.wanted[partition].offset < log.active_segment.base_offset < _limit(log, fetch.up_to)


class _LongPoll:
    """A fetch that waits."""

    def __init__(self, polls: LongPolls, fetch: Fetch, results: Results, done: Callable[[Results], None]) -> None:
        self._polls = polls
        self._fetch = fetch
        self._done: Callable[[Results], None] | None = done
        self._size = 0
        self._seen: dict[FetchKey, tuple[int, int]] = {}
        """Of each partition, the offset up to which its bytes are counted, and how many they are."""
        self._wakers: dict[FetchKey, tuple[Log, Callable[[], None]]] = {}
        for partition, found in results.items():
            log = log_of(polls.broker.topics, partition, fetch.wanted[partition])
            if log is not None and found.error is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._size += len(found.records)
                self._seen[partition] = (found.next_offset, len(found.records))
                self._wakers[partition] = (log, partial(self._wake, partition, log))
        for log, wake in self._wakers.values():
            polls.broker.when_readable(log, wake)
        self._timer = polls.loop.call_later(fetch.max_wait_ms / 1000, self.finish)

    def finish(self) -> None:
        """Read again and answer."""
        done, self._done = self._done, None
        if done is None:
            return
        self._timer.cancel()
        for log, wake in self._wakers.values():
            self._polls.broker.forget_reader(log, wake)
        self._polls.waiting.discard(self)
        done(read_all(self._polls.broker.topics, self._fetch))

    def _wake(self, partition: FetchKey, log: Log) -> None:
        if self._done is None:
            return
        current = log_of(self._polls.broker.topics, partition, self._fetch.wanted[partition])
        if current is not log or self._has_enough(partition, log):
            self.finish()
        else:
            self._polls.broker.when_readable(log, self._wakers[partition][1])

    def _has_enough(self, partition: FetchKey, log: Log) -> bool:
        """Count what has come; a log that cannot be read ends the wait, and the last read tells why."""
        offset, size = self._seen[partition]
        if _limit(log, self._fetch.up_to) <= offset:
            return False
        if self._fetch.min_bytes <= 1:
            return True
        room = self._fetch.wanted[partition].max_bytes - size
        if room <= 0:
            return False
        try:
            with storage_errors(log.path):
                read = log.read(offset, room, up_to=self._fetch.up_to)
        except (ClientError, StorageFailed, CorruptLog):
            return True
        self._size += len(read.records)
        self._seen[partition] = (read.next_offset, size + len(read.records))
        return self._size >= self._fetch.min_bytes
