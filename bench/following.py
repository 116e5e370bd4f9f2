"""How long after a commit `kohort pipeline --follow` shows it in the tables: everything as processes of its own."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.rows import Row, bounded, progress, told
from bench.servers import kohort

TOPIC, GROUP = "orders", "followed"
_COMMITS = 12
_BETWEEN_S = 2.0
_LOOK_S = 0.02
_DEADLINE_S = 120.0


def measure(work: Path) -> list[Row]:
    """Some commits, one after the other, each timed from its acknowledgement to its row in `current_offsets`."""
    work.mkdir(parents=True)
    with kohort({"log.flush.mode": "always"})(work / "data") as server:
        _create_topic(server.address)
        consumer = Consumer({"bootstrap.servers": server.address, "group.id": GROUP, "enable.auto.commit": False})
        _commit(consumer, 0)
        out = work / "tables"
        command = [str(Path(sys.executable).parent / "kohort"), "pipeline", f"kafka://{server.address}"]
        progress("spark: --follow, a cluster")
        with subprocess.Popen([*command, "--out", str(out), "--follow"], stdout=subprocess.DEVNULL) as following:
            try:
                _wait_for(following, out, 0)
                seconds = []
                for offset in range(1, _COMMITS + 1):
                    _commit(consumer, offset)
                    seconds.append(_wait_for(following, out, offset))
                    time.sleep(_BETWEEN_S)
            finally:
                following.send_signal(signal.SIGINT)
        consumer.close()
    return [
        told("--follow: from a commit to its row, each", ", ".join(f"{took:.1f}" for took in seconds) + " s"),
        bounded("... the longest, in seconds", max(seconds), 5, at_most=True),
    ]


def _create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})  # is to live until the answer is there
    for made in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        made.result(_DEADLINE_S)


def _commit(consumer: Consumer, offset: int) -> None:
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)


def _wait_for(following: subprocess.Popen[bytes], out: Path, offset: int) -> float:
    began = time.perf_counter()
    while _seen(out) != offset:
        if following.poll() is not None:
            raise RuntimeError(f"--follow has ended with code {following.returncode}")
        if time.perf_counter() > began + _DEADLINE_S:
            raise RuntimeError(f"offset {offset} is not in the tables after {_DEADLINE_S:.0f} s")
        time.sleep(_LOOK_S)
    return time.perf_counter() - began


def _seen(out: Path) -> int | None:
    """The group's offset as the tables have it; None while they change places."""
    try:
        rows = pq.read_table(out / "current_offsets", columns=["group", "committed_offset"]).to_pylist()
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    return next((int(row["committed_offset"]) for row in rows if row["group"] == GROUP), None)
