"""What became of transactional commits: each waits for its producer's next marker, wherever in the log that stands."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kohort.log.stretch import Marker
from kohort.records import kernels
from kohort.records.batch import CONTROL, TRANSACTIONAL
from kohort.records.columns import Columns
from kohort.records.control import ControlType
from kohort.records.kernels import Longs

PLAIN, COMMITTED, ABORTED, OPEN = 0, 1, 2, 3
NAMES = ("plain", "committed", "aborted", "open")

NOT_DECIDED = -1

MarkersBehind = Callable[[int], Iterable[Marker]]
"""All markers of a log from a byte of the current file on, as the log goes on."""


DecidedRows = tuple[NDArray[np.int8], Longs, Longs]
"""Of every row of some columns: its fate, the offset and the time of its marker."""


class Fates:
    """The fates of one log's commits, window by window.

    Most transactions end soon: their marker stands in the same window. For those that are open at the end of a window
    the log is read ahead, frames only, until their markers are found; a producer that has none is not looked for again.
    """

    def __init__(self) -> None:
        self._hanging: set[int] = set()

    def decide(
        self, columns: Columns, position: int, markers_behind: MarkersBehind, end: int | None = None
    ) -> DecidedRows:
        """Fate, marker's offset and marker's time of every row; `position` is the byte where the window begins.

        With `end`, what is decided at that offset or behind it is still open.
        """
        fates = np.zeros(len(columns), np.int8)
        offsets: Longs = np.full(len(columns), NOT_DECIDED)
        times: Longs = np.full(len(columns), NOT_DECIDED)
        if not np.any(columns.heads[:, kernels.ATTRIBUTES] & TRANSACTIONAL):
            return fates, offsets, times
        attributes = columns.heads[columns.batches, kernels.ATTRIBUTES]
        puts = np.flatnonzero((attributes & TRANSACTIONAL != 0) & (attributes & CONTROL == 0))
        producers = columns.heads[columns.batches[puts], kernels.PRODUCER_ID]
        markers = _marker_rows(columns, attributes)
        found = _next_marker(columns, puts, producers, markers)
        inside = found != NOT_DECIDED
        rows = found[inside]
        commit = columns.heads[columns.batches[rows], kernels.MARKER] == ControlType.COMMIT
        fates[puts[inside]] = np.where(commit, COMMITTED, ABORTED)
        offsets[puts[inside]], times[puts[inside]] = columns.offsets[rows], columns.timestamps[rows]
        waiting, waiting_for = puts[~inside], producers[~inside]
        fates[waiting] = OPEN
        if len(waiting):
            behind = position + int(columns.heads[-1, kernels.POSITION] + columns.heads[-1, kernels.SIZE])
            for producer, marker in self._look_ahead(set(waiting_for.tolist()), markers_behind, behind):
                its = waiting[waiting_for == producer]
                fates[its] = COMMITTED if marker.commit else ABORTED
                offsets[its], times[its] = marker.offset, marker.timestamp
        if end is not None:
            later = offsets >= end
            fates[later], offsets[later], times[later] = OPEN, NOT_DECIDED, NOT_DECIDED
        return fates, offsets, times

    def _look_ahead(
        self, producers: set[int], markers_behind: MarkersBehind, position: int
    ) -> Iterable[tuple[int, Marker]]:
        missing = producers - self._hanging
        if not missing:
            return
        for marker in markers_behind(position):
            if marker.producer_id in missing:
                yield marker.producer_id, marker
                missing.remove(marker.producer_id)
                if not missing:
                    return
        self._hanging |= missing


def _marker_rows(columns: Columns, attributes: Longs) -> Longs:
    """The first rows of the batches that end a transaction."""
    control = np.flatnonzero(attributes & CONTROL)
    batches = columns.batches[control]
    first = np.ones(len(control), np.bool_)
    first[1:] = batches[1:] != batches[:-1]
    ends: NDArray[np.bool_] = np.isin(columns.heads[batches, kernels.MARKER], list(ControlType))
    return control[first & ends]


def _next_marker(columns: Columns, puts: Longs, producers: Longs, markers: Longs) -> Longs:
    """For each put the row of its producer's next marker in these columns, or `NOT_DECIDED`."""
    found: Longs = np.full(len(puts), NOT_DECIDED)
    if not len(markers):
        return found
    marking, marker_numbers = np.unique(
        columns.heads[columns.batches[markers], kernels.PRODUCER_ID], return_inverse=True
    )
    numbers = np.searchsorted(marking, producers)
    known = marking[np.minimum(numbers, len(marking) - 1)] == producers
    # One number tells the producer and the row, so that one search finds the next marker of the same producer.
    span = len(columns)
    order = np.argsort(marker_numbers * span + markers)
    places = (marker_numbers * span + markers)[order]
    next_ = np.searchsorted(places, numbers * span + puts)
    inside = known & (next_ < len(places))
    candidates = order[next_[inside]]
    same = marker_numbers[candidates] == numbers[inside]
    chosen = np.flatnonzero(inside)[same]
    found[chosen] = markers[candidates[same]]
    return found
