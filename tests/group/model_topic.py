"""`__consumer_offsets` as the model watches it: every append is remembered, with what became of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.offsets_log import AppendCallback, LoadCallback
from kohort.log.replaying import replay_log
from kohort.records.batch import read_batches
from kohort.records.finished_batch import FinishedBatch
from tests.group.model_log import Entry, Write, entries
from tests.group.offsets_topic import OffsetsTopic

APPEND_ERRORS = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
    ErrorCode.CORRUPT_MESSAGE,
)


class WatchedTopic(OffsetsTopic):
    """Remembers every append and what became of it.

    Markers keep their place among held appends: a coordinator hears of one when all before it is safe. `doubt_next`
    makes an append fail although it stands in the log, as when too few replicas have it.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.writes: dict[int, list[Write]] = defaultdict(list)
        """Since the partition was loaded last."""
        self.unsettled: list[Write] = []
        self._markers: list[Write] = []
        self._doubts: list[ErrorCode] = []
        self._decoded: dict[int, list[Entry]] = defaultdict(list)

    def entries(self, partition: int) -> Sequence[Entry]:
        """Everything that stands in a partition."""
        known = self._decoded[partition]
        start = known[-1].position + 1 if known else 0
        if start < self.log(partition).log_end_offset:
            known += entries(self.batches(partition, start))
        return known

    def append(self, partition: int, records: bytes | FinishedBatch, done: AppendCallback) -> None:
        end = self.log(partition).log_end_offset
        found = entries(read_batches(bytes(records.data) if isinstance(records, FinishedBatch) else records))
        write = self._watch(partition, (entry._replace(position=entry.position + end) for entry in found))
        is_doubtful = bool(self._doubts) and not self._is_holding and not self._errors

        def settled(error: ErrorCode, position: int) -> None:
            if is_doubtful and error is ErrorCode.NONE:
                error, position = self._doubts.pop(), -1
            else:
                write.is_gone = error is not ErrorCode.NONE
            self._settle(write, error)
            done(error, position)

        super().append(partition, records, settled)

    def load(self, partition: int, done: LoadCallback) -> None:
        def loaded(result: Any) -> None:
            self.writes[partition].clear()
            done(result)

        super().load(partition, loaded)

    def end_transaction(self, partition: int, producer_id: int, is_commit: bool, done: Callable[[], None]) -> None:
        """A marker is written; `done` is called when it and all before it is safe."""
        position = self.log(partition).log_end_offset
        self.write_marker(partition, producer_id, is_commit=is_commit)
        if not self._is_holding:
            done()
            return
        write = self._watch(partition, entries(self.batches(partition, position)))
        self._markers.append(write)

        def settled(error: ErrorCode, _: int) -> None:
            is_wanted = write in self._markers
            write.is_gone = error is not ErrorCode.NONE
            self._settle(write, error)
            if is_wanted and error is ErrorCode.NONE:
                done()

        self._held.append((settled, partition, position))

    def _watch(self, partition: int, found: Iterable[Entry]) -> Write:
        write = Write(partition, self._clock.monotonic_ms(), tuple(found))
        self.writes[partition].append(write)
        self.unsettled.append(write)
        return write

    def _settle(self, write: Write, error: ErrorCode) -> None:
        write.error = error
        self.unsettled.remove(write)
        if write in self._markers:
            self._markers.remove(write)

    # What a test tells it

    def doubt_next(self, error: ErrorCode) -> None:
        self._doubts.append(error)

    def forget_markers(self, partition: int) -> None:
        """Nobody waits for these any more: whoever leads the partition now finds them in the log."""
        self._markers = [write for write in self._markers if write.partition != partition]

    def fail_held(self, error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        for _, partition, position in self._held:
            self._cut(partition, position)
        super().fail_held(error)

    def crash(self, *, is_lost: bool) -> None:
        """Whoever waits for an append, or for a load, is no more; nor is what was held, if it `is_lost`."""
        held, self._held = self._held, []
        for _, partition, position in held if is_lost else ():
            self._cut(partition, position)
            self.log(partition).truncate_to(position)
        self._held_loads = []
        self.unsettled = []
        self._markers = []

    def _cut(self, partition: int, position: int) -> None:
        self._decoded[partition] = [entry for entry in self._decoded[partition] if entry.position < position]

    def calm(self) -> None:
        """Nothing fails any more, and nothing is held."""
        self._errors.clear()
        self._doubts.clear()
        self.fail_loads(None)
        self.release()
        self.finish_loads()


class ReadOnlyTopic:
    """The same logs for a coordinator that may only load them."""

    def __init__(self, topic: OffsetsTopic) -> None:
        self._topic = topic

    def append(self, partition: int, records: bytes, _: AppendCallback) -> None:
        raise AssertionError(f"{len(records)} bytes written to partition {partition} by loading it")

    def load(self, partition: int, done: LoadCallback) -> None:
        done(replay_log(self._topic.log(partition), 5_242_880))
