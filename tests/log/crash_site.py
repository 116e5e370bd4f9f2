"""A broker's storage that is watched while it works.

A `Site` is a data directory in use, on a disk that records what is done to it. It keeps a ledger: which batches were
appended from which operation on, which were acknowledged by then, when a partition was made, deleted, cut at its start.
From the ledger follows what a disk found after a crash at operation n must and may hold (`expected`). Nothing here
relies on the log's own idea of what is durable.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from uuid import UUID

from kohort.clock import VirtualClock
from kohort.config import FlushMode, LogConfig
from kohort.errors import KohortError
from kohort.log.cleaner import Cleaner
from kohort.log.directory import CLEAN_SHUTDOWN, LogDirectory
from kohort.log.files import Files
from kohort.log.flusher import Flusher
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles
from kohort.records.batch import read_batches
from tests.log.folding import TIME

DATA = "/data"
MAIN = TopicPartition("offsets", 0)
MARKER = f"{DATA}/{CLEAN_SHUTDOWN}"
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    index_interval_bytes=100,
    delete_retention_ms=1000,
    file_delete_delay_ms=1000,
    min_cleanable_dirty_ratio=0.0,
    producer_id_expiration_ms=1 << 60,
)
NOTHING: Image = {DATA: None}

Step = Callable[["Site"], object]


@dataclass(frozen=True, slots=True)
class Appended:
    started: int
    batch: bytes
    next_offset: int
    future: "Future[None]"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the disk must and may hold: the batches that were written by then, and up to where they are promised."""

    batches: tuple[bytes, ...]
    promised_end: int
    highest_start: int
    cleaned: bool
    must_exist: bool
    may_exist: bool = True


@dataclass
class Ledger:
    """What was done and what was promised, each with the number of file operations before it."""

    appended: list[Appended] = field(default_factory=list)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)
    cleanings: list[int] = field(default_factory=list)
    made: int | None = None
    deletion_begun: int | None = None
    deleted: int | None = None

    def note_acknowledgements(self, operations: int) -> None:
        known = {end for _, end in self.acknowledged}
        for append in self.appended:
            done = append.future.done() and append.future.exception() is None
            if done and append.next_offset not in known:
                self.acknowledged.append((operations, append.next_offset))

    def expected(self, operations: int) -> Expected:
        return Expected(
            batches=tuple(append.batch for append in self.appended if append.started < operations),
            promised_end=max((end for at, end in self.acknowledged if at <= operations), default=0),
            highest_start=max((start for at, start in self.starts if at < operations), default=0),
            cleaned=any(at < operations for at in self.cleanings),
            must_exist=_by(self.made, operations) and not _by(self.deletion_begun, operations - 1),
            may_exist=not _by(self.deleted, operations),
        )


def _by(moment: int | None, operations: int) -> bool:
    return moment is not None and moment <= operations


class Site:
    """A data directory in use."""

    def __init__(
        self,
        image: Mapping[str, bytes | None] = NOTHING,
        config: LogConfig = CONFIG,
        flush_mode: FlushMode = FlushMode.ALWAYS,
        journal_bytes: int | None = None,
    ) -> None:
        """With `journal_bytes` appends are made safe by a journal, which begins anew when it has so many."""
        self.start_image = dict(image)
        self.disk = SimulatedFiles(image)
        self.recording = RecordingFiles(self.disk)
        self.files: Files = self.recording
        self.config = config
        self.flush_mode = flush_mode
        self.journal_bytes = journal_bytes
        self.clock = VirtualClock(TIME)
        self.ledger = Ledger()

    @property
    def operations(self) -> int:
        return len(self.recording.operations)

    @property
    def log(self) -> Log:
        return self.directory.logs[MAIN]

    def start(self) -> None:
        self.directory = open_directory(self.files, self.clock, self.config, self.flush_mode, self.journal_bytes)
        self.flusher = Flusher(FlushMode.ALWAYS, self.clock, keeper=self.directory.keeper)
        self.cleaner = Cleaner(self.files, DATA, self.clock)

    def create(self) -> None:
        self.directory.create_log(MAIN)
        self.ledger.made = self.operations

    def append(self, batch: bytes) -> None:
        """Append, and note when that is acknowledged. If the disk failed, the bytes may yet be found: nobody knows."""
        started = self.operations
        end = self.log.log_end_offset
        self.ledger.appended = [earlier for earlier in self.ledger.appended if earlier.next_offset <= end]
        placed = end.to_bytes(8, "big") + batch[8:12] + bytes(4) + batch[16:]
        [read] = read_batches(placed)
        future: Future[None] = Future()
        self.ledger.appended.append(Appended(started, placed, read.header.next_offset, future))
        try:
            info = self.log.append(batch, origin=AppendOrigin.COORDINATOR)
        except KohortError:
            if self.log.failure is None:
                self.ledger.appended.pop()
            raise
        assert info.next_offset == read.header.next_offset
        durable = self.flusher.durable(self.log, info.next_offset)
        durable.add_done_callback(lambda done: future.set_result(None) if done.exception() is None else None)
        self.ledger.note_acknowledgements(self.operations)

    def flush(self) -> None:
        self.flusher.run_once()
        self.ledger.note_acknowledgements(self.operations)

    def clean(self) -> None:
        self.ledger.cleanings.append(self.operations)
        self.cleaner.clean(self.log)

    def retain(self) -> None:
        """Let retention do its work; whatever it takes lies below the base of the active segment or the log end."""
        self.ledger.starts.append((self.operations, self.log.log_end_offset))
        self.directory.tick()

    def delete(self) -> None:
        self.ledger.deletion_begun = self.operations
        self.directory.delete_log(MAIN)
        self.ledger.deleted = self.operations

    def close(self) -> None:
        """Shut down; if that was clean, everything that was written is there."""
        self.directory.close()
        if self.disk.exists(MARKER) and MAIN in self.directory.logs:
            self.ledger.acknowledged += [(self.operations, append.next_offset) for append in self.ledger.appended]

    def kill(self) -> None:
        """The process ends, the machine goes on: everything written is there, and all locks are free."""
        operations = self.recording.operations
        self.disk = SimulatedFiles(self.disk.image())
        self.recording = RecordingFiles(self.disk)
        self.recording.operations = operations
        self.files = self.recording

    def run(self, steps: Iterable[Step]) -> "Site":
        for step in steps:
            step(self)
        return self


def open_directory(
    files: Files,
    clock: VirtualClock,
    config: LogConfig,
    flush_mode: FlushMode = FlushMode.ALWAYS,
    journal_bytes: int | None = None,
) -> LogDirectory:
    return LogDirectory(
        files,
        DATA,
        clock,
        lambda _: config,
        flush_mode=flush_mode,
        journaled=() if journal_bytes is None else {MAIN.topic},
        journal_bytes=journal_bytes or 0,
        new_uuid=lambda: UUID(int=1),
    )
