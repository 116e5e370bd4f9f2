"""Two clusters, what is in the first, and what real clients read from the second."""

from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from kohort.records.batch import Header, Record
from kohort.testing import Broker
from tests.cli.commands import Done, run_main
from tests.migration.random_logs import RandomLog, random_log

PATIENCE_S = 60.0
TOPIC = "orders"


def read_all(broker: Broker, topic: str = TOPIC, partition: int = 0) -> list[Record]:
    """Every record that a consumer gets, under the offset that it has there."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "log_level": 0})
    try:
        where = TopicPartition(topic, partition, 0)
        start, end = consumer.get_watermark_offsets(where, timeout=PATIENCE_S)
        assert start == 0
        consumer.assign([where])
        found: list[Record] = []
        while len(found) < end:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None, message.error()
            headers = tuple(Header(name, value) for name, value in message.headers() or ())
            time = message.timestamp()[1]
            found.append(Record(message.offset(), time, message.key(), message.value(), headers))
        return found
    finally:
        consumer.close()


def copied(records: list[Record]) -> list[Record]:
    """As they are in a copy: numbered from 0."""
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def offsets_of(broker: Broker, group: str) -> dict[tuple[str, int], tuple[int, str]]:
    """What the broker has in mind; librdkafka ends what it commits with a zero."""
    found = broker.groups().get(group)
    if found is None:
        return {}
    return {
        (key.topic, key.partition): (value.offset, value.metadata.rstrip("\0")) for key, value in found.offsets.items()
    }


def saved(directory: Path, seeds: Mapping[str, int], steps: int = 60) -> dict[str, RandomLog]:
    """A log directory as a broker of old would leave it, with a log of chance for each partition."""
    logs = {name: random_log(seed, steps) for name, seed in seeds.items()}
    for name, log in logs.items():
        log.save(directory / name)
    return logs


def migrate(source: Path | str, to: Broker, *arguments: str | Path) -> Done:
    return run_main("migrate", source, "--to", to.bootstrap_servers, *arguments)


def live(broker: Broker) -> str:
    return f"kafka://{broker.bootstrap_servers}"
