"""A disk that takes its time, and a broker on it."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kohort.errors import ErrorCode
from kohort.log.faulty_files import FaultyFiles
from kohort.log.simulated_files import SimulatedFiles
from tests.broker.data_plane import TOPIC, make_topic
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient

OFFSET_COMMIT, OFFSET_FETCH = 8, 9
ALWAYS = {"log.flush.mode": "always"}


class SlowDisk(FaultyFiles):
    """Files whose syncs take until somebody lets them go, or says that they fail."""

    def __init__(self) -> None:
        super().__init__(SimulatedFiles())
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.is_broken = False

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        if name == "sync":
            assert self.may_sync.wait(30)
            if self.is_broken:
                raise OSError(errno.EIO, "the disk is broken", path)
        with super().call(name, path):
            yield


def commit(offset: int, *, group: str = "g", member: str = "", generation: int = -1) -> dict[str, Any]:
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
    return {
        "group_id": group,
        "member_id": member,
        "generation_id_or_member_epoch": generation,
        "topics": [{"name": TOPIC, "partitions": partitions}],
    }


def error_of(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


@contextmanager
def slow_broker() -> Iterator[tuple[Running, SlowDisk, WireClient]]:
    """One that has a topic and everything that a first commit makes."""
    files = SlowDisk()
    with running(files=files, settings=ALWAYS) as broker, broker.client() as client:
        make_topic(broker)
        broker.on_loop(broker.broker.ensure_offsets_topic)
        assert error_of(client.ask(OFFSET_COMMIT, 6, **commit(0))) == ErrorCode.NONE
        try:
            yield broker, files, client
        finally:
            files.is_broken = False
            files.may_sync.set()


def wait_for(broker: Running, commits: int) -> None:
    """Until so many requests have been looked at, whether they are answered or not."""
    requests = broker.server.traffic.apis[OFFSET_COMMIT].requests
    while broker.on_loop(lambda: requests[6]) < commits:
        pass
