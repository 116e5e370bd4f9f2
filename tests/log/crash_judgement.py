"""The judgement of a disk that was found after a crash.

`judge` starts on the disk as the next process would, and compares what is there with what had been promised; whatever
does not fit is told as a sentence. A `Campaign` does so for every moment of a history, and for every moment of the
starts that follow.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.errors import CorruptLog, KohortError
from kohort.log.crash_images import Disk, crash_points
from kohort.log.partition import Log, ReadUpTo
from kohort.log.recorded_files import DirSynced, Opened, Operation, RecordingFiles, Unlinked
from kohort.log.simulated_files import Image, SimulatedFiles
from kohort.records.batch import RecordBatch, read_batches
from tests.log.crash_site import CONFIG, DATA, MAIN, MARKER, Expected, Site, open_directory
from tests.log.folding import TIME, State, fold

MISREAD = "what readers get is not what is there"


@dataclass
class Judgement:
    """What was found on one disk: sentences about what is wrong, and what the start did to it."""

    problems: list[str]
    operations: list[Operation]
    after: Image
    batches: list[bytes]


def judge(image: Image, expected: Expected, config: LogConfig = CONFIG, journal_bytes: int | None = None) -> Judgement:
    """Start on this disk, as after a crash, and say what is not as promised."""
    disk = SimulatedFiles(image)
    files = RecordingFiles(disk)
    problems: list[str] = []
    batches: list[bytes] = []
    try:
        directory = open_directory(files, VirtualClock(TIME + 10_000), config, journal_bytes=journal_bytes)
    except KohortError as error:
        return Judgement([f"the start failed: {error}"], files.operations, disk.image(), batches)
    problems += [f"{where} was refused: {failure}" for where, failure in directory.failed.items()]
    if directory.was_clean != (MARKER in image):
        problems.append("the marker of a clean shutdown was not believed, or was made up")
    problems += _marker_order(files.operations, marked=MARKER in image)
    log = directory.logs.get(MAIN)
    if log is not None:
        batches = read_log(log)
        if fetch_log(log) != b"".join(batches):
            problems.append(MISREAD)
        problems += _compare(log, batches, expected, marked=MARKER in image)
        if not expected.may_exist:
            problems.append("a deleted partition came back")
    elif expected.must_exist and not directory.failed:
        problems.append("the partition has vanished")
    return Judgement(problems, files.operations, disk.image(), batches)


def read_log(log: Log) -> list[bytes]:
    """Every batch of a log, byte for byte."""
    found = []
    for segment in log.segments:
        data = segment.file.read_at(0, segment.size)
        found += [data[batch.header.position : batch.header.end] for batch in read_batches(data)]
    return found


def fetch_log(log: Log) -> bytes:
    """Everything that a reader gets who begins at the start, found through the indexes; ends where he is refused."""
    found = b""
    offset = log.log_start_offset
    with contextlib.suppress(CorruptLog):
        while (fetched := log.read(offset, 150, up_to=ReadUpTo.LOG_END)).records:
            found += fetched.records
            offset = fetched.next_offset
    return found


def opened(batches: Iterable[bytes]) -> list[RecordBatch]:
    return [batch for data in batches for batch in _opened(data)]


@lru_cache(4096)
def _opened(data: bytes) -> tuple[RecordBatch, ...]:
    """The same few batches are on nearly every disk."""
    return tuple(read_batches(data))


def state_of(batches: Iterable[bytes]) -> State:
    return fold(opened(batches))


def _compare(log: Log, batches: list[bytes], expected: Expected, *, marked: bool) -> list[str]:
    written = opened(expected.batches)
    ends = [0, *(batch.header.next_offset for batch in written)]
    end = log.log_end_offset
    if end not in ends:
        return [f"the log ends at {end}, within a batch or behind everything that was written"]
    problems = []
    if end < expected.promised_end:
        problems.append(f"acknowledged up to {expected.promised_end}, there up to {end}")
    if marked and end != ends[-1]:
        problems.append(f"a clean shutdown with {ends[-1]} offsets written and {end} there")
    start = log.log_start_offset
    if start > expected.highest_start:
        problems.append(f"the log starts at {start}, nothing was to go beyond {expected.highest_start}")
    prefix = [batch for batch, read in zip(expected.batches, written, strict=True) if read.header.next_offset <= end]
    if expected.cleaned:
        if state_of(batches) != state_of(prefix):
            problems.append(f"a reader sees {state_of(batches)} instead of {state_of(prefix)}")
    elif batches != [data for data in prefix if opened([data])[0].header.base_offset >= start]:
        problems.append("the batches are not those that were written")
    if not start:
        problems += _compare_transactions(log, batches, opened(prefix), end)
    return problems


def _compare_transactions(log: Log, batches: list[bytes], prefix: list[RecordBatch], end: int) -> list[str]:
    """The last stable offset, and which of the batches that are there are known to be aborted."""
    begun: dict[int, int] = {}
    spans: list[tuple[int, int, int]] = []
    for batch in prefix:
        header = batch.header
        if header.is_control:
            first = begun.pop(header.producer_id, None)
            if first is not None and batch.records[0].key == b"\0\0\0\0":
                spans.append((header.producer_id, first, header.last_offset))
        elif header.is_transactional:
            begun.setdefault(header.producer_id, header.base_offset)
    problems = []
    stable = min(begun.values(), default=end)
    if log.last_stable_offset != stable:
        problems.append(f"the last stable offset is {log.last_stable_offset} instead of {stable}")
    told = [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in log.aborted_transactions(0, stable)]
    for header in (batch.header for batch in opened(batches)):
        if not header.is_transactional or header.is_control or not header.record_count or header.base_offset >= stable:
            continue
        aborted, known = (
            any(pid == header.producer_id and first <= header.base_offset <= last for pid, first, last in some)
            for some in (spans, told)
        )
        if aborted != known:
            problems.append(
                f"the batch at {header.base_offset} is {'' if aborted else 'not '}aborted, readers are misled"
            )
    return problems


def _marker_order(operations: list[Operation], *, marked: bool) -> list[str]:
    """The marker must be gone, durably, before any partition is touched."""
    touched = next(
        (
            n
            for n, done in enumerate(operations)
            if isinstance(done, Opened) and done.path.startswith(f"{DATA}/{MAIN}/")
        ),
        None,
    )
    if not marked or touched is None:
        return []
    before = operations[:touched]
    if Unlinked(MARKER) in before and DirSynced(DATA) in before[before.index(Unlinked(MARKER)) :]:
        return []
    return ["a partition was opened while the marker of a clean shutdown could come back"]


@dataclass
class Campaign:
    """Crashes of one history, at every operation, and crashes of the starts that follow."""

    site: Site
    limit: int = 12
    second_limit: int = 2
    images: int = 0
    violations: list[str] = field(default_factory=list)
    _judged: dict[object, list[bytes]] = field(default_factory=dict)

    def run(self, *, every_byte: bool = False, ignored: Callable[[Operation], bool] = lambda _: False) -> "Campaign":
        """Crash everywhere; on a disk that lies, the operations that are `ignored` do nothing."""
        disk = Disk(self.site.start_image)
        for number, operation in enumerate([None, *self.site.recording.operations]):
            if operation is not None and not ignored(operation):
                disk.apply(operation)
            expected = self.site.ledger.expected(number)
            for image in disk.images(self.limit, every_byte=every_byte):
                self._crash(f"operation {number}", image, expected)
        return self

    def _crash(self, when: str, image: Image, expected: Expected) -> None:
        first = self._judge(when, image, expected)
        if first is None:
            return
        found = self._judged[_key(image, expected)]
        self._judge(f"{when}, second start", first.after, expected)
        if self._judged[_key(first.after, expected)] != found:
            self.violations.append(f"{when}: a second start makes another log of it")
        if not self.second_limit:
            return
        for number, disk in enumerate(crash_points(image, first.operations)):
            for second in disk.images(self.second_limit):
                self._judge(f"{when}, start crashed at {number}", second, expected)

    def _judge(self, when: str, image: Image, expected: Expected) -> Judgement | None:
        """Judge a disk that was not seen before; None if it was."""
        key = _key(image, expected)
        if key in self._judged:
            return None
        judged = judge(image, expected, self.site.config, self.site.journal_bytes)
        self._judged[key] = judged.batches
        self.images += 1
        self.violations += [f"{when}: {problem}" for problem in judged.problems]
        return judged


def _key(image: Image, expected: Expected) -> object:
    return tuple(image.items()), expected
