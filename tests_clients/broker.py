"""`kohort serve` in a process of its own, which a test stops, kills and starts again on the same data and port."""

import contextlib
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_PATIENCE_S = 120.0
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Fewer than 50 of each: they are made and opened hundreds of times here.
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "8",
}
_READY = "kohort ready kafka="


def _free_port() -> int:
    """Below those that are given to clients: nobody must get it while the broker is away, not even to connect to it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Broker:
    """Started by `start`; whatever it says on stderr is an error of the test."""

    def __init__(self, work: Path, settings: Mapping[str, str], protocol: str = "PLAINTEXT") -> None:
        self._protocol = protocol
        self._data = work / "data"
        self._log = work / "kohort.log"
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[str] | None = None
        self._port = _free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def add_user(self, name: str, password: str) -> None:
        """Before it runs."""
        command = [str(Path(sys.executable).parent / "kohort"), "users", "add", name, "--data", str(self._data)]
        subprocess.run([*command, "--password-file", "-"], input=password, text=True, check=True, capture_output=True)

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "kohort"), "serve"]
        command += ["--listen", f"{self._protocol}://{self.address}"]
        command += ["--data", str(self._data)]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith(_READY):
            self.end(signal.SIGKILL)
            raise RuntimeError(f"kohort said {line!r}: {self._log.read_text()}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to stop, or kill it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.communicate(timeout=_PATIENCE_S)
        finally:
            process.kill()
            process.wait()
        complaints = self._log.read_text()
        assert not complaints, complaints
        assert process.returncode == (0 if how == signal.SIGTERM else -how)

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.end(how)
        self.start()
