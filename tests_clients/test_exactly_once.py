"""Consume, transform, produce: each record once, whatever happens to the broker and to the workers meanwhile."""

import signal

import pytest

from tests_clients.client import Client
from tests_clients.kinds import Can, with_clients
from tests_clients.scene import Scene


@pytest.fixture
def settings() -> dict[str, str]:
    """Transactions of workers that crashed are looked for more often than every ten seconds."""
    return {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


class Work:
    """A topic that gets more and more records, to be transformed into another."""

    def __init__(self, scene: Scene, partitions: int) -> None:
        self._scene = scene
        self._partitions = range(partitions)
        self._count = 0
        for topic in ("in", "out"):
            scene.create_topic(topic, partitions)

    def add(self) -> None:
        """A few records in each partition, in small batches: KafkaJS makes a transaction of each."""
        for _ in range(5):
            numbers = range(self._count, self._count + 5)
            for partition in self._partitions:
                self._scene.produce("in", [f"{partition}-{number:03}" for number in numbers], partition)
            self._count += 5

    def give(self, worker: Client, name: str) -> None:
        """Add some, until a transaction of a worker has sent all it has to send, and not ended or only just."""
        sent = worker.sent.get(name, 0)
        self.add()
        worker.wait(lambda: worker.sent.get(name, 0) > sent, f"transaction of {name}")

    def check(self) -> None:
        """Wait until all has been transformed, and count."""
        ends = {("in", partition): self._count for partition in self._partitions}
        self._scene.until(lambda: {at: offset for at, (offset, _) in self._scene.offsets("g").items()} == ends)
        wanted = [f"seen {partition}-{number:03}" for partition in self._partitions for number in range(self._count)]
        assert self._scene.read_all("out", len(self._partitions)) == wanted
        careless = self._scene.read_all("out", len(self._partitions), isolation="read_uncommitted")
        assert len(careless) > len(wanted)


def start_worker(scene: Scene, name: str) -> Client:
    """One that transforms until it is told to stop. Its transactions are small; every fourth is aborted."""
    worker = scene.start_client()
    worker.call(
        "transform",
        name=name,
        group="g",
        source="in",
        target="out",
        transactional_id=f"by {name}",
        transaction_ms=4000,
        assignor=scene.kind.eager,
        isolation="read_committed",
        session_ms=3000,
    )
    return worker


@with_clients()
def test_each_record_is_transformed_once_while_the_broker_restarts(scene: Scene) -> None:
    work = Work(scene, 2)
    worker = start_worker(scene, "t")
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        work.give(worker, "t")
        scene.broker.restart(how)
    work.give(worker, "t")
    scene.kill_client(worker)
    worker = start_worker(scene, "t")
    work.check()
    worker.call("stop", name="t")


@with_clients(Can.FENCED_OFFSETS)
def test_each_record_is_transformed_once_by_workers_that_come_and_crash(scene: Scene) -> None:
    work = Work(scene, 4)
    staying = start_worker(scene, "staying")
    work.give(staying, "staying")
    for name in ("second", "third"):
        crashing = start_worker(scene, name)
        scene.until(lambda: scene.client.call("group", group="g") == {"state": "Stable", "members": 2})
        work.give(crashing, name)
        scene.kill_client(crashing)
        # Nobody goes on with its partitions before its session is over, and its transaction, which nobody ends.
        work.give(staying, "staying")
        scene.until(lambda: scene.client.call("group", group="g") == {"state": "Stable", "members": 1})
    work.check()
    staying.call("stop", name="staying")
