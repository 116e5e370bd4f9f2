"""Where the time of a commit goes: one of 10 partitions, in one process, from a frame that has come to an answer that
is written, without sockets and with flush mode `os`.

python -m bench.hot_path prints the processor time of each stage with all that it contains. Run it in turns with another
tree to compare the two: machines are noisy.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

from bench.permissions import GROUP, TOPIC, Transport, frame, serving
from bench.rows import Row, show, told
from kohort.broker.connection import Connection
from kohort.broker.server import Server
from kohort.broker.topics import OFFSETS_TOPIC
from kohort.broker.wire import read_header
from kohort.clock import SystemClock
from kohort.group.requests import GroupId
from kohort.log.files import RealFiles

_TIMES, _ROUNDS = 500, 40


def measure(place: Path) -> list[Row]:
    with serving({}, RealFiles(), str(place / "data")) as broker:
        broker.short_way.open()
        transcoder, now_ms = broker.short_way.transcoder, SystemClock().now_ms()
        assert transcoder is not None
        whole, server = frame(), Server(broker, broker.loop)
        request = whole[4:]
        header = read_header(request)
        connection = Connection(server)
        connection.connection_made(Transport())

        def serve() -> None:
            connection.data_received(whole)
            connection.write_out()

        for _ in range(_TIMES):
            serve()  # the first goes the general way: there is no group yet
        short = transcoder.transcode(request, header.body_at, header.api_version, now_ms)
        at_once = server.apis[header.api_key].at_once
        assert short is not None
        assert at_once is not None
        log = broker.topics.log(OFFSETS_TOPIC, broker.groups.manager.partition_for(GroupId(GROUP)))
        assert log is not None
        file = os.open(place / "file", os.O_CREAT | os.O_RDWR, 0o600)
        stages: dict[str, Callable[[], object]] = {
            "a request is received and answered": serve,
            ". the API": lambda: at_once(broker, connection.peer, request, header.body_at, header.api_version),
            ". . the request becomes a batch": lambda: transcoder.transcode(
                request, header.body_at, header.api_version, now_ms
            ),
            ". . is there the partition": lambda: broker.topics.get(TOPIC),
            ". . the group": lambda: broker.groups.commit_at_once(short.names.who, short.commits),
            ". . . the log": lambda: log.append_finished(short.commits.batch, leader_epoch=0),
            ". . . . the system's write": lambda: os.write(file, short.commits.batch.data),
        }
        try:
            return [told(name, f"{_microseconds(stage):.2f} µs") for name, stage in stages.items()]
        finally:
            os.close(file)


def _microseconds(stage: Callable[[], object]) -> float:
    """The best of many rounds."""
    found = []
    for _ in range(_ROUNDS):
        began = process_time()
        for _ in range(_TIMES):
            stage()
        found.append((process_time() - began) / _TIMES * 1e6)
    return min(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        show(measure(Path(directory)))
