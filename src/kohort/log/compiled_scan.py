"""The walk over a large window, done by the compiled loops; it says what the plain walk of `scan.py` would say."""

import numpy as np

from kohort.errors import CorruptLog
from kohort.log.batch_table import BatchTable
from kohort.log.scan import WindowScan
from kohort.records import kernels
from kohort.records.batch import HEADER_SIZE, claimed_end, read_header


def scan_large_window(data: bytes) -> WindowScan | None:
    """The whole batches of a window; None if there are some of old formats in it, which this walk does not read."""
    room = np.empty((len(data) // HEADER_SIZE + 1, kernels.HEAD_WIDTH), np.int64)
    count, stopped_at, status = kernels.scan_batches(np.frombuffer(data, np.uint8), 0, len(data), room)
    rows = room[:count]
    if (rows[:, kernels.MAGIC] < 2).any() or (status == kernels.COMPLETE and stopped_at < len(data)):
        return None
    headers = BatchTable(data, rows)
    if status == kernels.COMPLETE:
        return WindowScan(headers, stopped_at, 0, None)
    end = claimed_end(data, stopped_at)
    wanted = end - stopped_at if end is not None else 0
    if status == kernels.CUT_OFF:
        return WindowScan(headers, stopped_at, wanted, None)
    return WindowScan(headers, stopped_at, wanted, _reason(data, stopped_at))


def _reason(data: bytes, position: int) -> CorruptLog:
    try:
        read_header(data, position)
    except CorruptLog as damage:
        return damage
    raise AssertionError(f"the compiled walk refuses a batch at byte {position} that the scalar codec reads")
