"""A broker that is killed and started again on the same data, always on the same port: clients find it again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from kohort.testing.refusals import BrokerFailed

_HOST = "127.0.0.1"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.segment.bytes": "20000",
    "log.cleaner.backoff.ms": "200",
}


def state_of(source: str) -> Any:
    command = [str(Path(sys.executable).parent / "kohort"), "state", source, "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class KilledBroker:
    """`kohort serve`, life after life."""

    last_words: tuple[str, ...] = ("the broker did not start",)
    """What is heard of one that is killed while it starts."""

    def __init__(self, data: Path) -> None:
        self._data, self._ports = str(data), Ports()
        self._life: OwnProcess | None = None
        self.kills = 0
        self.kills_at_start = 0
        self.starts_s: list[float] = []

    @property
    def address(self) -> str:
        return f"{_HOST}:{self._ports.kafka}"

    def _new_life(self) -> OwnProcess:
        return OwnProcess(self._data, _HOST, self._ports, SETTINGS)

    def start(self) -> None:
        began = time.monotonic()
        self._life = self._new_life()
        self._ports = self._life.start()
        self.starts_s.append(time.monotonic() - began)

    def start_and_kill(self, after_s: float) -> None:
        """Kill it so soon after its process was made that it may not be ready yet."""
        life = self._new_life()
        is_killed = threading.Event()

        def kill() -> None:
            if life.pid is not None:
                is_killed.set()
                os.kill(life.pid, signal.SIGKILL)

        timer = threading.Timer(after_s, kill)
        timer.start()
        try:
            life.start()
        except BrokerFailed as failure:
            timer.cancel()
            if not is_killed.is_set() or not str(failure).startswith(self.last_words):
                raise
            self.kills_at_start += 1
        else:
            timer.join()
            life.finish(cleanly=False)
            self.kills += 1

    def kill(self) -> None:
        assert self._life is not None
        self._life.finish(cleanly=False)
        self.kills += 1

    def stop(self) -> None:
        assert self._life is not None
        self._life.finish(cleanly=True)

    def end(self) -> Any:
        """Stop it, and tell what `kohort state` reads in its files."""
        self.stop()
        return state_of(self._data)

    def abandon(self) -> None:
        """Leave nothing behind when something went wrong."""
        if self._life is not None:
            self._life.finish(cleanly=False)
