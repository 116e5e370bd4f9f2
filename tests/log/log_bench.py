"""A log on a disk in memory, and batches to put into it."""

from dataclasses import replace
from pathlib import Path

from kohort.clock import VirtualClock
from kohort.config import FlushMode, LogConfig
from kohort.log.files import Files
from kohort.log.partition import AppendOrigin, Log, ReadUpTo
from kohort.log.recovery import open_log
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.compression import Codec
from kohort.records.control import ControlType, Marker, marker_batch

TIME = 1_600_000_000_000
PATH = "/data/orders-0"
GOLDEN = Path(__file__).parent.parent / "golden"


def batch(
    *values: str,
    time: int = TIME,
    key: bytes | None = b"k",
    codec: Codec = Codec.NONE,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """A batch with a record for each value."""
    records = [Record(offset + n, time, key, value.encode()) for n, value in enumerate(values or ("v",))]
    return RecordBatch.build(
        records,
        codec=codec,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        partition_leader_epoch=leader_epoch,
    ).encode()


def marker(
    producer: int, *, epoch: int = 0, commit: bool = True, coordinator_epoch: int = 0, time: int = TIME
) -> bytes:
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    told = Marker(kind, coordinator_epoch)
    return marker_batch(told, producer_id=producer, producer_epoch=epoch, timestamp=time).encode()


class Bench:
    """A log that can be stopped and started."""

    def __init__(
        self,
        files: Files | None = None,
        path: str = PATH,
        flush_mode: FlushMode = FlushMode.ALWAYS,
        **settings: object,
    ) -> None:
        self.files: Files = files or SimulatedFiles({"/data": None})
        self.path = path
        self.clock = VirtualClock(TIME)
        self.config = replace(LogConfig(), **settings)
        self.flush_mode = flush_mode
        self.files.make_dir(path)
        self.log = self.open()

    def open(self, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0) -> Log:
        self.log = open_log(
            self.files,
            self.path,
            self.config,
            self.clock,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            flush_mode=self.flush_mode,
        )
        return self.log

    def restart(self) -> Log:
        """A clean stop and a start."""
        self.log.close()
        return self.open(clean=True)

    def append(self, *batches: bytes, flush: bool = True, origin: AppendOrigin = AppendOrigin.COORDINATOR) -> None:
        for data in batches:
            self.log.append(data, origin=origin)
        if flush:
            self.log.flush()

    def segment(self, *batches: bytes) -> None:
        """Append and begin a new segment."""
        self.append(*batches)
        self.log.roll()

    def values(self, up_to: ReadUpTo = ReadUpTo.LOG_END) -> list[str]:
        return [(record.value or b"").decode() for record in read_all(self.log, up_to)]

    def names(self) -> list[str]:
        return self.files.list_dir(self.path)

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]


def read_bytes(log: Log, up_to: ReadUpTo = ReadUpTo.LOG_END, max_bytes: int = 1 << 20) -> bytes:
    """Everything that a reader sees, fetched piece by piece."""
    parts = []
    offset = log.log_start_offset
    while (fetched := log.read(offset, max_bytes, up_to=up_to)).records:
        parts.append(fetched.records)
        assert fetched.next_offset > offset
        offset = fetched.next_offset
    return b"".join(parts)


def read_all(log: Log, up_to: ReadUpTo = ReadUpTo.LOG_END, max_bytes: int = 1 << 20) -> list[Record]:
    return [record for found in read_batches(read_bytes(log, up_to, max_bytes)) for record in found.records]
