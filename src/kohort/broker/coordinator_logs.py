"""The topics of the coordinators as these see them: this broker's own logs, made safe by the flusher."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from kohort.broker.durable import Durable
from kohort.broker.leading import leader_epoch
from kohort.broker.topics import OFFSETS_TOPIC, Topics
from kohort.errors import ClientError, ErrorCode, KohortError, StorageFailed
from kohort.group.offsets_log import AppendCallback
from kohort.group.waiting_commits import WaitingCommits
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.finished_batch import FinishedBatch
from kohort.transaction.markers import MarkersCallback, TxnMarker

S = TypeVar("S")


class CoordinatorLog(Generic[S]):
    """One such topic; `replay` makes a state of one of its partitions."""

    def __init__(self, topic: str, topics: Topics, durable: Durable, replay: Callable[[Log], S]) -> None:
        self._topic = topic
        self._topics = topics
        self._durable = durable
        self._replay = replay

    def append(self, partition: int, records: bytes | FinishedBatch, done: AppendCallback) -> None:
        """Write a batch of the coordinator's."""
        append_as_coordinator(self._topics, self._durable, TopicPartition(self._topic, partition), records, done)

    def append_at_once(self, partition: int, records: FinishedBatch) -> int | None:
        """The same where the flush mode lets nobody wait; None if it was not written, which `append` explains."""
        log = self._topics.log(self._topic, partition) if self._durable.is_prompt else None
        if log is None:
            return None
        try:
            first_offset = log.append_finished(records, leader_epoch=leader_epoch(log))
        except (ClientError, StorageFailed):
            return None
        self._durable.on_progress(log)
        return first_offset

    def append_soon(self, partition: int, waiting: WaitingCommits) -> bool:
        """Write commits that are settled when they are safe; if they were not written, `append` explains it."""
        log = self._topics.log(self._topic, partition)
        if log is None:
            return False
        try:
            waiting.position = log.append_finished(waiting.commits.batch, leader_epoch=leader_epoch(log))
        except (ClientError, StorageFailed):
            return False
        self._durable.then(log, log.log_end_offset, waiting.settle)
        return True

    def load(self, partition: int, done: Callable[[S | KohortError], None]) -> None:
        """Replay a partition. `done` hears of it when all that was read is safe, for who is answered from what a power
        cut takes away has seen what never was. After a start that is at once."""
        log = self._topics.log(self._topic, partition)
        if log is None:
            done(KohortError(f"{self._topic}-{partition} is not here"))
            return
        try:
            state = self._replay(log)
        except KohortError as error:
            done(error)
            return
        if log.high_watermark == log.log_end_offset:
            done(state)
            return

        def told(error: ErrorCode) -> None:
            unsafe = f"{self._topic}-{partition} could not be made safe up to where it was read"
            done(state if error is ErrorCode.NONE else StorageFailed(unsafe))

        self._durable.then(log, log.log_end_offset, told)


class LocalMarkers:
    """A `MarkerWriter` for partitions of this broker. Whoever coordinates groups hears of those in their topic."""

    def __init__(
        self,
        topics: Topics,
        durable: Durable,
        now_ms: Callable[[], int],
        on_offsets_marker: Callable[[TxnMarker], None],
    ) -> None:
        self._topics = topics
        self._durable = durable
        self._now_ms = now_ms
        self._on_offsets_marker = on_offsets_marker

    def write(self, markers: Sequence[TxnMarker], done: MarkersCallback) -> None:
        errors: dict[TopicPartition, ErrorCode] = {}

        def written(marker: TxnMarker, error: ErrorCode) -> None:
            errors[marker.partition] = error
            if error is ErrorCode.NONE and marker.partition.topic == OFFSETS_TOPIC:
                self._on_offsets_marker(marker)
            if len(errors) == len(markers):
                done(_as_told(errors))

        for marker in markers:
            kind = Marker(ControlType.COMMIT if marker.is_commit else ControlType.ABORT, marker.coordinator_epoch)
            batch = marker_batch(
                kind,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                timestamp=self._now_ms(),
            )
            append_as_coordinator(
                self._topics,
                self._durable,
                marker.partition,
                batch.encode(),
                lambda error, _, marker=marker: written(marker, error),  # type: ignore[misc] # a default binds it
            )


def _as_told(errors: Mapping[TopicPartition, ErrorCode]) -> Mapping[TopicPartition, ErrorCode]:
    """A partition that is not led here does not exist: there is no other broker."""
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {
        partition: gone if error is ErrorCode.NOT_LEADER_OR_FOLLOWER else error for partition, error in errors.items()
    }


def append_as_coordinator(
    topics: Topics,
    durable: Durable,
    partition: TopicPartition,
    records: bytes | FinishedBatch,
    done: AppendCallback,
) -> None:
    """Write a batch that no client sent; `done` hears when it is safe."""
    log = topics.log(*partition)
    if log is None:
        is_broken = partition in topics.directory.failed
        done(ErrorCode.KAFKA_STORAGE_ERROR if is_broken else ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        return
    try:
        if isinstance(records, FinishedBatch):
            first_offset = log.append_finished(records, leader_epoch=leader_epoch(log))
        else:
            appended = log.append(records, leader_epoch=leader_epoch(log), origin=AppendOrigin.COORDINATOR)
            first_offset = appended.first_offset
    except (ClientError, StorageFailed) as error:
        done(error.code, -1)
        return
    durable.then(log, log.log_end_offset, lambda error: done(error, first_offset))
