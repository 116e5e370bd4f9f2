"""Produce and Fetch in few words, for the tests of the APIs that write and read logs."""

import time
from typing import Any
from uuid import UUID

from kohort.log.partition import AppendOrigin
from kohort.records.batch import read_batches
from tests.broker.running import Running
from tests.broker.wire_client import WireClient
from tests.log import log_bench

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
DELETE_RECORDS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 21, 22, 23
IDS_FROM = 13
"""The version of Produce and of Fetch in which topics have no names any more."""

TOPIC = "orders"
SOON = 60_000
"""How long a fetch may wait that is woken long before."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def batch(*values: str, **kinds: Any) -> bytes:
    """A batch of this moment, so that retention leaves it alone."""
    return log_bench.batch(*values, **{"time": now_ms(), **kinds})


def make_topic(broker: Running, name: str = TOPIC, partitions: int = 1, **settings: str) -> None:
    told = {setting.replace("_", "."): value for setting, value in settings.items()}
    broker.on_loop(lambda: broker.broker.topics.create(name, partitions, told))


def end_transaction(broker: Running, producer: int, *, commit: bool, topic: str = TOPIC, partition: int = 0) -> None:
    """Append the marker of a transaction, as its coordinator does."""

    def append() -> None:
        log = broker.broker.topics.log(topic, partition)
        assert log is not None
        marker = log_bench.marker(producer, commit=commit, time=now_ms())
        appended = log.append(marker, origin=AppendOrigin.COORDINATOR)
        broker.broker.durable.then(log, appended.next_offset, lambda _: None)

    broker.on_loop(append)


def produce_request(
    *records: bytes | None,
    topic: str = TOPIC,
    acks: int = -1,
    transactional_id: str | None = None,
    timeout: int = 30_000,
) -> dict[str, Any]:
    """The first records go to partition 0, the next to 1, and so on."""
    data = [{"index": index, "records": given} for index, given in enumerate(records)]
    return {
        "acks": acks,
        "timeout": timeout,
        "transactional_id": transactional_id,
        "topic_data": [{"name": topic, "partition_data": data}],
    }


def produce(client: WireClient, *records: bytes | None, version: int = 8, **kinds: Any) -> Any:
    """What became of the records of partition 0."""
    return produce_all(client, *records, version=version, **kinds)[0]


def produce_all(client: WireClient, *records: bytes | None, version: int = 8, **kinds: Any) -> Any:
    request = produce_request(*records, **kinds)
    if version >= IDS_FROM:
        request["topic_data"] = by_id(client, request["topic_data"], "name")
    return client.ask(PRODUCE, version, **request).responses[0].partition_responses


def topic_id(client: WireClient, topic: str = TOPIC) -> UUID:
    (told,) = client.ask(METADATA, 12, topics=[{"name": topic}], allow_auto_topic_creation=False).topics
    return told.topic_id


def by_id(client: WireClient, topics: list[dict[str, Any]], called: str) -> list[dict[str, Any]]:
    """What is said of topics, with their ids in the place of their names, which are `called` so."""
    return [
        {"topic_id": topic_id(client, topic[called])} | {name: told for name, told in topic.items() if name != called}
        for topic in topics
    ]


def fetch_request(
    *offsets: int,
    topic: str = TOPIC,
    max_wait: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 26,
    partition_max_bytes: int = 1 << 20,
    **more: Any,
) -> dict[str, Any]:
    """From the first offset of partition 0, from the next of partition 1, and so on."""
    of_partition = {name: more.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in more}
    partitions = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": partition_max_bytes, **of_partition}
        for index, offset in enumerate(offsets)
    ]
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "topics": [{"topic": topic, "partitions": partitions}] if partitions else [],
        **more,
    }


def fetch(client: WireClient, *offsets: int, version: int = 11, **kinds: Any) -> Any:
    """What was found in partition 0, without a session."""
    return fetch_all(client, *offsets, version=version, **kinds)[0]


def fetch_all(client: WireClient, *offsets: int, version: int = 11, **kinds: Any) -> Any:
    no_session = {} if version < 7 else {"session_id": 0, "session_epoch": -1}
    return ask_to_fetch(client, version, fetch_request(*offsets, **no_session, **kinds)).responses[0].partitions


def ask_to_fetch(client: WireClient, version: int, request: dict[str, Any]) -> Any:
    """The whole answer to a request that calls topics by their names, whatever this version calls them by."""
    if version >= IDS_FROM:
        for name in ("topics", "forgotten_topics_data"):
            request[name] = by_id(client, request.get(name, []), "topic")
    if version >= 15:
        del request["replica_id"]
    return client.ask(FETCH, version, **request)


def values(records: bytes) -> list[str]:
    """The values of all records in these batches that are not control records."""
    return [
        record.value.decode()
        for one in read_batches(records)
        if not one.header.is_control
        for record in one.records
        if record.value is not None
    ]
