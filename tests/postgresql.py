"""A real PostgreSQL server of a test's own: Debian's programs, on loopback, in a directory that goes with it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

_INSTALLED = Path("/usr/lib/postgresql")
_USER = "kohort"
_NEW = ("--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C")
_PATIENCE_S = 60.0
_PAUSE_S = 0.05


class NoPostgresql(Exception):
    """It is not installed."""


class Postgresql:
    """One server. It can be stopped, killed and started again, and keeps its port and what it holds."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self._programs = _programs()
        self._data = directory / "data"
        self._log = directory / "log"
        self._settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **settings}
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        directory.mkdir()
        self._owner = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if self._owner:  # the server refuses to be root's
            shutil.chown(directory, **self._owner)
        made = subprocess.run(
            [self._programs / "initdb", *_NEW, "-U", _USER, "-D", self._data],
            capture_output=True,
            text=True,
            **self._owner,
        )
        assert made.returncode == 0, made.stderr

    @property
    def url(self) -> str:
        return self.url_of(_USER)

    def url_of(self, user: str, *, port: int | None = None, database: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection in which every statement stands for itself."""
        return psycopg.connect(self.url, autocommit=True)

    def start(self) -> None:
        """Until it answers."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._owner,
            )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(self._log.read_text()) from None
                time.sleep(_PAUSE_S)
            else:
                return

    def stop(self) -> None:
        """In order; whoever is connected is cut off."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """At once: it recovers at its next start."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(_PATIENCE_S)
            self._server = None

    def copied_to(self, directory: Path) -> None:
        """Keep what it holds now; it must be stopped."""
        assert self._server is None
        shutil.copytree(self._data, directory)

    def put_back(self, directory: Path) -> None:
        """It holds what it held when it was copied; it must be stopped."""
        assert self._server is None
        shutil.rmtree(self._data)
        subprocess.run(["cp", "-a", str(directory), str(self._data)], check=True)
        if self._owner:
            subprocess.run(["chown", "-R", "postgres:postgres", str(self._data)], check=True)


@contextmanager
def postgresql(**settings: str) -> Iterator[Postgresql]:
    """Started; `NoPostgresql` if there can be none."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # the server's own user has to get in
        server = Postgresql(Path(directory, "postgresql"), settings)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _programs() -> Path:
    """Where the newest of them are: Debian has them out of the way, others on the path."""
    found = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise NoPostgresql("no initdb: Debian's package is called postgresql")
    return found[-1].parent if found else Path(str(on_path)).parent


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
