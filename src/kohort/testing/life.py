"""The lives of one broker: where it runs, what it keeps, how it ends."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from kohort.broker.setting_kinds import text_of
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.clock import Clock, SystemClock, VirtualClock
from kohort.config import FlushMode
from kohort.log.simulated_files import SimulatedFiles
from kohort.testing.clocks import BrokerClock
from kohort.testing.controlled import ControlledBroker
from kohort.testing.faults import Faults
from kohort.testing.in_process import InProcess
from kohort.testing.own_process import OwnProcess, ask_for_coordinator
from kohort.testing.ports import Ports
from kohort.testing.refusals import BrokerFailed, NotPossible
from kohort.testing.releasable import ReleasableFiles

T = TypeVar("T")
Settings = Mapping[str, str | int | float | bool]

_DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}
_PATIENCE_S = 30.0
_HOUSEKEEPING_MS = 15_000


class Life:
    """Starts, ends and starts again, with the same data on the same port."""

    def __init__(
        self,
        data: str | PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        clock: Literal["real", "virtual"] = "real",
        subprocess: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        http: bool | int = False,
        create_offsets_topic: bool = True,
    ) -> None:
        if clock not in ("real", "virtual"):
            raise ValueError(f"a clock is real or virtual, not {clock!r}")
        if subprocess and clock == "virtual":
            raise NotPossible("a broker in a process of its own runs on the real clock")
        self._data = None if data is None else str(Path(fspath(data)).absolute())
        self._settings = _DEFAULTS | {name: text_of(value) for name, value in (settings or {}).items()}
        self._host = host
        self._ports = Ports(port, (0 if http is True else http) if http is not False else None)
        self._has_offsets_topic = create_offsets_topic
        self._is_own_process = subprocess
        self._remove_data: Callable[[], object] = lambda: None
        self._memory = SimulatedFiles()
        self._disk = ReleasableFiles()
        self._faults = Faults(self._on_loop_or_now)
        self._process: OwnProcess | None = None
        self._thread: InProcess | None = None
        system = SystemClock()
        self._clock: Clock = system if clock == "real" else VirtualClock(system.now_ms())
        self.clock = BrokerClock(self._clock, self._advance)

    # Life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self.stop()
        except BrokerFailed as failure:
            if error is None:
                raise
            error.add_note(f"the broker: {failure}")
        finally:
            self._remove_data()

    def start(self) -> None:
        """Start it; `with` does."""
        if self.is_running:
            raise NotPossible("the broker is running already")
        if self._is_own_process:
            self._start_process()
        else:
            self._start_thread()

    def stop(self) -> None:
        """End it cleanly, if it runs: whoever waits is answered, everything is synced. `with` does."""
        self._finish(cleanly=True)

    def kill(self) -> None:
        """End it without a word, as a crash does: nobody is answered, and no clean shutdown is noted.

        What was written stays, as it does when a process is killed and its machine lives on.
        """
        if not self.is_running:
            raise NotPossible("the broker is not running")
        self._finish(cleanly=False)

    def restart(self) -> None:
        """Start it again on the same port with the same data, after a clean end if it still runs."""
        self.stop()
        self.start()

    @property
    def is_running(self) -> bool:
        return self._process is not None or self._thread is not None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect: HOST:PORT."""
        return f"{self._host}:{self.port}"

    @property
    def listeners(self) -> dict[str, str]:
        """Where clients connect to each listener of the setting `listeners`: HOST:PORT by its name."""
        if not self._ports.kafka:
            raise NotPossible("the broker was not started yet")
        told = (listener.partition("://") for listener in self._ports.listeners.split(","))
        return {name: address for name, _, address in told}

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        """The port, which stays the same through restarts."""
        if not self._ports.kafka:
            raise NotPossible("the broker was not started yet")
        return self._ports.kafka

    @property
    def http_port(self) -> int:
        """The port of metrics, health and the live page, which stays the same too."""
        if self._ports.http is None:
            raise NotPossible("that needs a broker with a port for it: Broker(http=True)")
        if not self._ports.http:
            raise NotPossible("the broker was not started yet")
        return self._ports.http

    @property
    def http_url(self) -> str:
        """Where metrics, health and the live page are, without a slash at the end."""
        return f"http://{self._host}:{self.http_port}"

    # What is below

    def _start_thread(self) -> None:
        mode = FlushMode.OS if self._data is None else FlushMode.ALWAYS
        place = "/memory" if self._data is None else self._data
        config = BrokerConfig(host=self._host, port=self._ports.kafka, data=place, log_flush_mode=mode)
        files = self._memory if self._data is None else self._disk
        thread = InProcess(with_settings(config, self._settings), self._ports, files, self._clock, self._faults)
        self._thread = thread
        try:
            self._settle_at(thread.start())
        except BaseException:
            self._thread = None
            raise
        if self._has_offsets_topic:
            self._call(lambda broker: broker.ensure_offsets_topic())

    def _start_process(self) -> None:
        settings = self._settings
        if self._data is None:
            self._data = tempfile.mkdtemp(prefix="kohort-")
            self._remove_data = weakref.finalize(self, shutil.rmtree, self._data, ignore_errors=True)
            self._settings = settings = {"log.flush.mode": "os", **settings}
        process = OwnProcess(self._data, self._host, self._ports, settings)
        self._settle_at(process.start())
        self._process = process
        if self._has_offsets_topic:
            ask_for_coordinator(self._host, self._ports.kafka)

    def _settle_at(self, ports: Ports) -> None:
        """Where it listens now, it listens after a restart too."""
        self._ports = ports
        if "listeners" in self._settings:
            self._settings = {**self._settings, "listeners": ports.listeners}

    def _finish(self, *, cleanly: bool) -> None:
        process, self._process = self._process, None
        thread, self._thread = self._thread, None
        if process is not None:
            process.finish(cleanly=cleanly)
        if thread is not None:
            try:
                thread.finish(cleanly=cleanly)
            finally:
                if not cleanly:
                    self._memory = SimulatedFiles(self._memory.image())
                    self._disk.release()

    def _check_in_process(self) -> None:
        if self._is_own_process:
            raise NotPossible("that needs a broker in the test's own process: Broker(subprocess=False)")

    def _call(self, action: Callable[[ControlledBroker], T]) -> T:
        self._check_in_process()
        if self._thread is None:
            raise NotPossible("the broker is not running")
        return self._thread.call(action)

    def _on_loop_or_now(self, action: Callable[[], None]) -> None:
        if self._thread is None:
            action()
        else:
            self._thread.call(lambda _: action())

    def _advance(self, clock: VirtualClock, ms: int) -> None:
        if self._thread is None:
            clock.advance(ms)
            return
        target = clock.monotonic_ms() + ms
        while not self._call(lambda broker: broker.move_clock(clock, target)):
            self._settle()
        if ms >= _HOUSEKEEPING_MS:
            self._call(lambda broker: broker.keep_house()).result(_PATIENCE_S)
        self._settle()

    def _settle(self) -> None:
        """Wait until everything that was written is told to be safe, and what follows from it too."""
        while not self._call(lambda broker: broker.when_safe()).result(_PATIENCE_S):
            pass
