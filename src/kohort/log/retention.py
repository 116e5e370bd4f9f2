"""Which segments are to go: those too old, those beyond the size, those below the log start offset.

Segments go from the oldest on, and only what is wholly below the high watermark.
"""

from collections.abc import Sequence

from kohort.config import LogConfig
from kohort.log.segment import Segment


def count_deletable(
    segments: Sequence[Segment], config: LogConfig, now_ms: int, *, log_start_offset: int, high_watermark: int
) -> int:
    """How many segments, from the oldest on, are to be deleted. The active one counts if it has batches."""
    deletes = "delete" in config.cleanup_policy
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for segment, successor in zip(segments, [*segments[1:], None], strict=True):
        end = successor.base_offset if successor else segment.next_offset
        if end > high_watermark or (successor is None and segment.size == 0):
            break
        too_old = config.retention_ms >= 0 and 0 <= segment.max_timestamp < now_ms - config.retention_ms
        too_much = config.retention_bytes >= 0 and excess >= segment.size
        below_start = successor is not None and end <= log_start_offset
        if not (below_start or (deletes and (too_old or too_much))):
            break
        excess -= segment.size
        count += 1
    return count
