"""`__consumer_offsets` for a coordinator under test: real logs on a disk in memory, which can be told to misbehave."""

from collections.abc import Callable, Iterator

from kohort.clock import Clock
from kohort.config import FlushMode, LogConfig
from kohort.errors import ClientError, ErrorCode, KohortError, StorageFailed
from kohort.group.offsets_log import AppendCallback, LoadCallback
from kohort.group.waiting_commits import WaitingCommits
from kohort.log.answers import ReadUpTo
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log
from kohort.log.recovery import open_log
from kohort.log.replaying import replay_log
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.finished_batch import FinishedBatch

LOG_CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=104_857_600)


class OffsetsTopic:
    """An `OffsetsLog`. Left alone it answers at once and truly.

    `fail_next` makes coming appends fail before anything is written; `hold` keeps the answers of coming appends (which
    are in the log then) until `release`, `release_one` or `fail_held`; partitions in `elsewhere` are led by another
    broker; `hold_loads` keeps loads under way until `finish_loads`.
    """

    def __init__(self, clock: Clock, *, config: LogConfig = LOG_CONFIG, read_size: int = 5_242_880) -> None:
        self._clock = clock
        self._config = config
        self._read_size = read_size
        self._files = SimulatedFiles({"/data": None})
        self._logs: dict[int, Log] = {}
        self._errors: list[ErrorCode] = []
        self._is_holding = False
        self._held: list[tuple[AppendCallback, int, int]] = []
        self._is_holding_loads = False
        self._held_loads: list[Callable[[], None]] = []
        self._load_failure: KohortError | None = None
        self.elsewhere: set[int] = set()
        self.leader_epoch = 0

    def log(self, partition: int) -> Log:
        """The real log of a partition."""
        log = self._logs.get(partition)
        if log is None:
            topic_partition = TopicPartition("__consumer_offsets", partition)
            path = f"/data/{topic_partition}"
            self._files.make_dir(path)
            log = open_log(self._files, path, self._config, self._clock, clean=True, flush_mode=FlushMode.OS)
            self._logs[partition] = log
        return log

    # What a coordinator calls

    def append(self, partition: int, records: bytes | FinishedBatch, done: AppendCallback) -> None:
        if self._errors:
            done(self._errors.pop(0), -1)
            return
        if partition in self.elsewhere:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        try:
            first_offset = self._append(self.log(partition), records)
        except (ClientError, StorageFailed) as error:
            done(error.code, -1)
            return
        if self._is_holding:
            self._held.append((done, partition, first_offset))
        else:
            done(ErrorCode.NONE, first_offset)

    def append_at_once(self, partition: int, records: FinishedBatch) -> int | None:
        if self._errors or self._is_holding or self._held or partition in self.elsewhere:
            return None
        try:
            return self._append(self.log(partition), records)
        except (ClientError, StorageFailed):
            return None

    def append_soon(self, partition: int, waiting: WaitingCommits) -> bool:
        if partition in self.elsewhere:
            return False

        def done(error: ErrorCode, position: int) -> None:
            waiting.position = position
            waiting.settle(error)

        self.append(partition, waiting.commits.batch, done)
        return True

    def _append(self, log: Log, records: bytes | FinishedBatch) -> int:
        if isinstance(records, FinishedBatch):
            return log.append_finished(records, leader_epoch=self.leader_epoch)
        return log.append(records, leader_epoch=self.leader_epoch, origin=AppendOrigin.COORDINATOR).first_offset

    def load(self, partition: int, done: LoadCallback) -> None:
        def finish() -> None:
            if self._load_failure is not None:
                done(self._load_failure)
                return
            try:
                state = replay_log(self.log(partition), self._read_size)
            except KohortError as error:
                done(error)
                return
            done(state)

        if self._is_holding_loads:
            self._held_loads.append(finish)
        else:
            finish()

    # What a test tells it

    def fail_next(self, error: ErrorCode, times: int = 1) -> None:
        self._errors += [error] * times

    def hold(self) -> None:
        self._is_holding = True

    @property
    def held(self) -> int:
        return len(self._held)

    def release(self) -> None:
        """Everything held is safe, and so is at once whatever comes."""
        self._is_holding = False
        while self._held:
            self.release_one()

    def release_one(self) -> None:
        """The oldest held append is safe."""
        done, _, position = self._held.pop(0)
        done(ErrorCode.NONE, position)

    def fail_held(self, error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """Nothing that is held was made safe: the logs are cut before it."""
        held, self._held = self._held, []
        for _, partition, position in held:
            log = self.log(partition)
            if position < log.log_end_offset:
                log.truncate_to(position)
        for done, _, _ in held:
            done(error, -1)

    def hold_loads(self) -> None:
        self._is_holding_loads = True

    def finish_loads(self) -> None:
        self._is_holding_loads = False
        held, self._held_loads = self._held_loads, []
        for finish in held:
            finish()

    def fail_loads(self, failure: KohortError | None) -> None:
        """Loads fail with this from now on; None: they do not."""
        self._load_failure = failure

    def write(self, partition: int, batch: bytes, *, origin: AppendOrigin = AppendOrigin.COORDINATOR) -> int:
        """A batch that did not come from the coordinator under test. Returns its offset."""
        return self.log(partition).append(batch, leader_epoch=self.leader_epoch, origin=origin).first_offset

    def write_marker(self, partition: int, producer_id: int, *, is_commit: bool, producer_epoch: int = 0) -> None:
        """The end of a producer's transaction."""
        marker = Marker(ControlType.COMMIT if is_commit else ControlType.ABORT, 0)
        batch = marker_batch(
            marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=self._clock.now_ms()
        )
        self.write(partition, batch.encode())

    def batches(self, partition: int, start: int = 0) -> list[RecordBatch]:
        """Everything in a partition from an offset on."""
        log = self.log(partition)
        found: list[RecordBatch] = []
        offset = max(start, log.log_start_offset)
        while offset < log.log_end_offset:
            fetched = log.read(offset, 1 << 20, up_to=ReadUpTo.LOG_END)
            found += read_batches(fetched.records)
            offset = fetched.next_offset
        return found

    def records(self, partition: int, start: int = 0) -> Iterator[Record]:
        for batch in self.batches(partition, start):
            yield from batch.records
