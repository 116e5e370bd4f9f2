"""`kohort serve` as a process that is killed and started again on the same data."""

import re
import subprocess
import sys
import time
from pathlib import Path

_PATIENCE_S = 60.0


class BrokerProcess:
    """Always on the same port, so that clients find it again."""

    def __init__(self, data: Path) -> None:
        self._data, self._port = data, 0
        self._process: subprocess.Popen[str] | None = None
        self.starts: list[float] = []
        """How long each start took, in seconds."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "kohort"), "serve", "--data", str(self._data)]
        settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.segment.bytes": "20000"}
        for name, value in (settings | {"log.cleaner.backoff.ms": "200"}).items():
            command += ["--set", f"{name}={value}"]
        began = time.monotonic()
        self._process = subprocess.Popen(
            [*command, "--listen", self.address], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        said = re.match(r"kohort ready kafka=127\.0\.0\.1:(\d+) ", ready)
        if said is None:
            raise AssertionError(f"the broker did not start again: {ready!r}, exit code {self._process.wait()}")
        self._port = int(said[1])
        self.starts.append(time.monotonic() - began)

    def kill(self) -> None:
        """SIGKILL: no chance to write anything."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=_PATIENCE_S)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=_PATIENCE_S)
        if self._process.returncode:
            raise AssertionError(f"the broker ended with code {self._process.returncode}")
