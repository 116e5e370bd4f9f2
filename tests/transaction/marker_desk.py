"""Partitions that markers are written to, as a coordinator under test sees them."""

from collections.abc import Sequence

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.transaction.markers import MarkersCallback, TxnMarker


class MarkerDesk:
    """A `MarkerWriter`. Left alone it writes all markers at once.

    `fail` makes coming markers of a partition fail; `hold` keeps coming markers unwritten until `release`.
    """

    def __init__(self) -> None:
        self.written: list[TxnMarker] = []
        self.asked = 0
        self._errors: dict[TopicPartition, list[ErrorCode]] = {}
        self._is_holding = False
        self._held: list[tuple[Sequence[TxnMarker], MarkersCallback]] = []

    def write(self, markers: Sequence[TxnMarker], done: MarkersCallback) -> None:
        self.asked += 1
        if self._is_holding:
            self._held.append((markers, done))
        else:
            self._write(markers, done)

    def _write(self, markers: Sequence[TxnMarker], done: MarkersCallback) -> None:
        outcome = {}
        for marker in markers:
            errors = self._errors.get(marker.partition)
            outcome[marker.partition] = errors.pop(0) if errors else ErrorCode.NONE
            if outcome[marker.partition] is ErrorCode.NONE:
                self.written.append(marker)
        done(outcome)

    def fail(self, topic: str, partition: int, error: ErrorCode, times: int = 1) -> None:
        self._errors.setdefault(TopicPartition(topic, partition), []).extend([error] * times)

    def hold(self) -> None:
        self._is_holding = True

    @property
    def held(self) -> int:
        return len(self._held)

    def release(self) -> None:
        self._is_holding = False
        held, self._held = self._held, []
        for markers, done in held:
            self._write(markers, done)
