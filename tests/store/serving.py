"""`kohort serve --store` in a process of its own."""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}
_PATIENCE_S = 60.0


class Serving:
    """One life of a broker."""

    def __init__(self, url: str, *, broker_id: int = 0, lease_ms: int = 2_000, port: int = 0) -> None:
        given = {**_SETTINGS, "broker.id": str(broker_id), "store.lease.ms": str(lease_ms)}
        words = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed when all is over
        command = [sys.executable, "-u", "-m", "kohort.cli.main", "serve", "--store", url, *words]
        command += ["--listen", f"127.0.0.1:{port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._said, text=True)

    def ready(self) -> str:
        """The address, when clients can connect."""
        assert self._process.stdout is not None
        too_late = threading.Timer(_PATIENCE_S, self._process.kill)
        too_late.start()
        line = self._process.stdout.readline()
        too_late.cancel()
        assert line.startswith("kohort ready kafka="), self.said()
        return line.split("kafka=")[1].split()[0]

    def said(self) -> str:
        """On stderr, so far."""
        self._said.seek(0)
        return self._said.read()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._process.wait(_PATIENCE_S)

    def close(self) -> None:
        if self.is_alive:
            self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()


@contextmanager
def serving(url: str, *, broker_id: int = 0, lease_ms: int = 2_000, port: int = 0) -> Iterator[Serving]:
    one = Serving(url, broker_id=broker_id, lease_ms=lease_ms, port=port)
    try:
        yield one
    finally:
        one.close()
