"""Counts orders by dish. A commit says what is counted, so an order is counted again rather than lost."""

from collections import Counter

from confluent_kafka import Consumer, KafkaException, Message


class Kitchen:
    """A member of the group `kitchen`."""

    def __init__(self, bootstrap_servers: str, **settings: object) -> None:
        self.dishes: Counter[str] = Counter()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "kitchen",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        self._consumer.subscribe(["orders"])

    def cook(self, timeout_s: float) -> bool:
        """Take one order, if one comes in time."""
        message = self._consumer.poll(timeout_s)
        if message is None:
            return False
        if message.error():
            raise KafkaException(message.error())
        self._count(message)
        return True

    def _count(self, message: Message) -> None:
        self.dishes[(message.value() or b"").decode()] += 1
        self._consumer.commit(message, asynchronous=False)

    def close(self) -> None:
        """Leave the group, so that others need not wait for the session to time out."""
        self._consumer.close()
