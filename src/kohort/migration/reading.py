"""The raw batches of a partition in a running cluster, and where it begins and ends.

A leader that has moved, and a connection that was lost, are waited for; other refusals are told.
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from kohort.admin.cluster import Cluster
from kohort.admin.messages import FETCH
from kohort.admin.offsets import log_offsets
from kohort.admin.refusals import in_words
from kohort.errors import CorruptLog, KohortError
from kohort.log.cluster import EARLIEST, PASSING, TopicPartition
from kohort.records.batch import BatchHeader, read_header, undecided

_FETCH_BYTES = 4 * 1024 * 1024
_MOST_BYTES = 256 * 1024 * 1024
"""Beyond this there is no batch that does not fit."""
_NO_RECORDS = 1
"""So many bytes: who asks for them wants to know the rest of the answer."""
_WAIT_MS = 500
_NOBODY = -1


class Refused(KohortError):
    """A partition that cannot be read or written; what others are does not depend on it."""


class Isolation(IntEnum):
    """Which batches are told of."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Bounds(NamedTuple):
    """Where a partition begins, how far it is decided, and where it ends."""

    start: int
    stable_end: int
    end: int


class Aborted(NamedTuple):
    """A transaction that was aborted, as the answer to a Fetch tells of it."""

    producer_id: int
    first_offset: int


class Fetched(NamedTuple):
    """Whole batches, the headers of which have been read, and the aborted transactions among them."""

    data: bytes
    headers: tuple[BatchHeader, ...]
    aborted: tuple[Aborted, ...]


def bounds(cluster: Cluster, where: TopicPartition) -> Bounds:
    """As they are now."""
    found = log_offsets(cluster, [where], EARLIEST)
    if where in found.refused:
        raise Refused(found.refused[where])
    told = cluster.run(_ask(cluster, where, found.found[where], _NO_RECORDS, Isolation.READ_COMMITTED))
    start = max(found.found[where], getattr(told, "log_start_offset", 0))
    return Bounds(start, told.last_stable_offset, told.high_watermark)


def fetch(cluster: Cluster, where: TopicPartition, start: int, end: int, isolation: Isolation) -> Iterator[Fetched]:
    """The batches of a partition from one offset up to another, some at a time."""
    offset, room = start, _FETCH_BYTES
    while offset < end:
        told = cluster.run(_ask(cluster, where, offset, room, isolation))
        data = bytes(told.records or b"")
        headers, next_offset = _whole_batches(data, offset, end)
        if next_offset > offset:
            aborted = tuple(Aborted(one.producer_id, one.first_offset) for one in told.aborted_transactions or ())
            yield Fetched(data, headers, aborted)
            offset = next_offset
        elif not data:
            return  # the cleaner has taken all that was left
        elif room < _MOST_BYTES:
            room *= 2
        else:
            raise Refused(f"nothing can be read from offset {offset} on, though it goes on to {end}")


async def _ask(cluster: Cluster, where: TopicPartition, offset: int, room: int, isolation: Isolation) -> Any:
    """The answer about one partition."""
    from aiokafka.errors import KafkaConnectionError, NodeNotReadyError, RequestTimedOutError

    topic, number = where
    wanted = {"partition": number, "fetch_offset": offset, "partition_max_bytes": room}
    deadline = cluster.deadline()
    while True:
        leader = cluster.leader(topic, number)
        try:
            if leader is None:
                raise NodeNotReadyError
            answer = await cluster.ask(
                leader,
                FETCH,
                replica_id=_NOBODY,
                max_wait=0 if room == _NO_RECORDS else _WAIT_MS,
                min_bytes=1,
                max_bytes=room,
                isolation_level=isolation,
                topics=[{"topic": topic, "partitions": [wanted]}],
                forgotten_topics_data=(),
            )
        except (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError):
            reason = "has no leader" if leader is None else f"broker {leader} does not answer"
        else:
            told = next((one for topic in answer.responses for one in topic.partitions), None)
            if told is not None and not told.error_code:
                return told
            # An answer without any partition comes from a broker that slows us down.
            error = 0 if told is None else told.error_code
            reason = in_words(error) if error else "the broker holds records back"
            if error and error not in PASSING:
                raise Refused(f"cannot be read from offset {offset} on: {reason}")
        if cluster.now() > deadline:
            raise cluster.failure(f"{topic}-{number}: {reason}")
        await cluster.pause()
        await cluster.look_again()


def _whole_batches(data: bytes, offset: int, end: int) -> tuple[tuple[BatchHeader, ...], int]:
    """Those that go beyond `offset` and begin before `end`, and the offset behind the last; the data may end inside of
    another one."""
    headers: list[BatchHeader] = []
    position = 0
    while position < len(data) and offset < end and not undecided(data, position):
        try:
            header = read_header(data, position)
        except CorruptLog as damage:
            raise Refused(f"what comes from offset {offset} on is damaged: {damage.reason}") from None
        if header.base_offset >= end:
            return tuple(headers), end
        position = header.end
        if header.last_offset >= offset:
            headers.append(header)
            offset = header.next_offset
    return tuple(headers), offset
