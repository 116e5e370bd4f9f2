"""A real producer that sends too much is told to wait, and gets everything through all the same."""

from confluent_kafka import Producer

from kohort.testing import Broker
from tests.broker.data_plane import TOPIC
from tests.broker.quotas.quota_requests import alter, entity
from tests.broker.wire_client import WireClient


def test_librdkafka_hears_of_its_throttling_and_loses_nothing() -> None:
    waits: list[float] = []
    with Broker() as broker:
        broker.create_topic(TOPIC)
        with WireClient(broker.port) as admin:
            alter(admin, entity(client_id="loud"), producer_byte_rate=10_000)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "client.id": "loud",
                "linger.ms": 0,
                "throttle_cb": lambda event: waits.append(event.throttle_time),
            }
        )
        failed: list[object] = []
        for _ in range(12):
            producer.produce(TOPIC, b"x" * 10_000, on_delivery=lambda error, _: failed.append(error) if error else None)
            producer.flush(30)
        assert producer.flush(30) == 0
        producer.poll(1)
    assert not failed
    assert any(wait > 0 for wait in waits)
