"""The producers of a log, from its newest snapshot and the batches behind it."""

from collections.abc import Sequence

from kohort.log.files import Files
from kohort.log.producer_snapshot import newest_snapshot
from kohort.log.producer_state import ProducerState
from kohort.log.segment import Segment


def load_snapshot(files: Files, directory: str, state: ProducerState, limit: int, otherwise: int, now_ms: int) -> None:
    """Start from the newest snapshot at or before `limit`, or with nothing at the offset `otherwise`."""
    offset, entries = newest_snapshot(files, directory, limit) or (otherwise, [])
    state.load(entries, max(offset, otherwise), now_ms)


def replay_segments(state: ProducerState, segments: Sequence[Segment]) -> None:
    """Follow the batches that lie behind what the state knows."""
    for segment, successor in zip(segments, [*segments[1:], None], strict=True):
        if successor is not None and successor.base_offset <= state.end_offset:
            continue
        start = segment.offset_index.lookup(state.end_offset).position
        for window in segment.scan(start, verify=False):
            for header in window.milestones():
                if header.base_offset >= state.end_offset:
                    state.replay(header, window.data)
            if window.damage is not None:
                raise window.damage
