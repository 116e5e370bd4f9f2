"""A broker in a process of its own: `kohort serve`, started and ended."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping

from kohort.broker.security.listener_settings import is_secret
from kohort.testing.ports import Ports
from kohort.testing.refusals import BrokerFailed

_PATIENCE_S = 60.0
_READY = "kohort ready kafka="
_FIND_COORDINATOR = 10


class OwnProcess:
    """One life of a broker, from its start to its end."""

    def __init__(self, data: str, host: str, ports: Ports, settings: Mapping[str, str]) -> None:
        secrets = {name: value for name, value in settings.items() if is_secret(name)}
        given = [
            word for name, value in settings.items() if name not in secrets for word in ("--set", f"{name}={value}")
        ]
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed when all is over
        self._command = [sys.executable, "-m", "kohort.cli.main", "serve"]
        if "listeners" not in settings:
            self._command += ["--listen", f"{host}:{ports.kafka}"]
        self._secrets = _written(secrets) if secrets else None
        if self._secrets is not None:
            self._command += ["--config", self._secrets.name]
        if ports.http is not None:
            self._command += ["--http", f"{host}:{ports.http}"]
        self._command += ["--data", data, *given]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> Ports:
        """Returns the ports when clients can connect to them."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._process = process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._complaints, text=True, env=environment
        )
        assert process.stdout is not None
        too_late = threading.Timer(_PATIENCE_S, process.kill)
        too_late.start()
        line = process.stdout.readline()
        too_late.cancel()
        if not line.startswith(_READY):
            process.kill()
            process.wait()
            raise BrokerFailed(self._end() or "the broker did not start")
        told = dict(word.split("=", 1) for word in line.split() if "=" in word)
        listeners = told["kafka"] if "://" in told["kafka"] else f"PLAINTEXT://{told['kafka']}"
        http = int(told["http"].rpartition(":")[2]) if "http" in told else None
        return Ports(int(listeners.partition(",")[0].rpartition(":")[2]), http, listeners)

    def finish(self, *, cleanly: bool) -> None:
        """`BrokerFailed` if it ends with an error although it was asked to end."""
        process = self._process
        if process is None or self._complaints.closed:
            return
        process.send_signal(signal.SIGTERM if cleanly else signal.SIGKILL)
        try:
            code = process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self._end()
            raise BrokerFailed(f"the broker did not end within {_PATIENCE_S} s") from None
        told = self._end()
        if cleanly and code:
            raise BrokerFailed(told or f"the broker ended with {code}")

    def _end(self) -> str:
        """What it said on stderr."""
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        if self._secrets is not None:
            self._secrets.close()
        with contextlib.closing(self._complaints):
            self._complaints.seek(0)
            return self._complaints.read().strip()


def _written(settings: Mapping[str, str]) -> "tempfile._TemporaryFileWrapper[str]":
    """Settings in a file that nobody else can read, as long as it is open: secrets are no arguments of a process."""
    file = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".properties")  # noqa: SIM115 - closed at the end
    for name, value in settings.items():
        file.write(f"{name}={value.replace(chr(10), chr(92) + 'n')}\n")
    file.flush()
    return file


def ask_for_coordinator(host: str, port: int) -> None:
    """A broker makes `__consumer_offsets` when it is first asked who coordinates a group."""
    name = b"kohort-testing"
    request = struct.pack(f">hhih{len(name)}sh", _FIND_COORDINATOR, 0, 1, len(name), name, 0)
    with socket.create_connection((host, port), timeout=_PATIENCE_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        if not connection.recv(4):
            raise BrokerFailed("the broker did not tell who coordinates groups")
