"""The walk over the raw batches of a segment file: the only place where one batch's length leads to the next.

`scan_window` looks at bytes in memory and says which whole batches stand in them, and where and why it stopped.
`scan_segment` slides such a window over a file, so that memory stays bounded by the window or the largest batch.
Both report damage instead of raising it: whoever asked knows whether a bad tail is to be cut or to be refused.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from kohort.errors import CorruptLog
from kohort.log.batch_table import BatchTable
from kohort.log.files import File
from kohort.records.batch import LOG_OVERHEAD, MAX_BATCH_BYTES, BatchHeader, read_header

WINDOW_BYTES = 4 * 1024 * 1024
_COMPILED_FROM = 16 * 1024 * 1024
"""So many bytes are worth the compiled walk; less is read before its loops are even loaded."""
_LOADED_FROM = 64 * 1024
"""And so many when they are."""
_COMPILED = "kohort.log.compiled_scan"

_PAUSED_WINDOW_BYTES = 32 * 1024
"""What is looked at between two pauses: about a millisecond's work."""

Pause = Callable[[], None]
"""Called again and again by work that takes long, for others who need the interpreter more."""

MAX_RELATIVE_OFFSET = (1 << 31) - 1
"""What an index entry can hold: no offset of a segment lies further behind its base."""


def expect_much(size: int) -> None:
    """So many bytes will be walked over, in however many files: the loops are loaded if that is worth it."""
    if size >= _COMPILED_FROM:
        import_module(_COMPILED)


class WindowScan(NamedTuple):
    """The whole batches in a window, and where the walk stopped: at its end, at a batch that goes on, or at damage."""

    headers: Sequence[BatchHeader]
    stopped_at: int
    wanted: int
    """How many bytes the batch at `stopped_at` has; 0 if that cannot be told yet."""
    damage: CorruptLog | None


@dataclass(frozen=True, slots=True)
class ScannedWindow:
    """Some batches of a file: the bytes from `position` on, and what stands in them.

    Positions in `headers` count from there, the position of the damage from the beginning of the file.
    """

    position: int
    data: bytes
    headers: Sequence[BatchHeader]
    damage: CorruptLog | None = None

    def batch(self, header: BatchHeader) -> bytes:
        return self.data[header.position : header.end]

    def last_until(self, position: int) -> BatchHeader | None:
        """The last batch that ends at or before a byte of the file."""
        if isinstance(self.headers, BatchTable):
            return self.headers.last_until(position - self.position)
        ending = (header for header in reversed(self.headers) if self.position + header.end <= position)
        return next(ending, None)

    def milestones(self) -> Iterator[BatchHeader]:
        """Every batch that tells more than its neighbours: of a producer or a new leader epoch, first, last."""
        if isinstance(self.headers, BatchTable):
            return (self.headers[number] for number in self.headers.milestones())
        return iter(self.headers)


def scan_window(data: bytes, *, verify: bool = True, compiled: bool = False) -> WindowScan:
    """Every whole batch from the first byte on; with `verify`, checksums are taken.

    With `compiled`, which takes checksums always, the walk is done by the compiled loops as far as they can.
    """
    if compiled:
        from kohort.log.compiled_scan import scan_large_window

        scan = scan_large_window(data)
        if scan is not None:
            return scan
    return _scan_plainly(data, verify)


def _scan_plainly(data: bytes, verify: bool) -> WindowScan:
    headers: list[BatchHeader] = []
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        wanted = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if len(data) - position < wanted <= MAX_BATCH_BYTES:
            return WindowScan(headers, position, wanted, None)
        try:
            header = read_header(data, position, verify=verify)
        except CorruptLog as damage:
            return WindowScan(headers, position, wanted, damage)
        headers.append(header)
        position = header.end
    return WindowScan(headers, position, 0, None)


def scan_segment(
    file: File,
    base_offset: int,
    *,
    start: int = 0,
    end: int | None = None,
    verify: bool = True,
    window_bytes: int = WINDOW_BYTES,
    pause: Pause | None = None,
) -> Iterator[ScannedWindow]:
    """The batches of a segment file from the byte `start` on, where a batch begins, window by window.

    Offsets must rise from batch to batch and lie within reach of the base offset. The walk ends at the byte `end` or
    with the file, or with a window that carries the damage. With a `pause` the steps are small and many.
    """
    if pause is not None:
        window_bytes = _PAUSED_WINDOW_BYTES
    end = file.size() if end is None else end
    position = start
    last_offset = base_offset - 1
    length = window_bytes
    compiled = (
        verify and pause is None and end - start >= (_LOADED_FROM if _COMPILED in sys.modules else _COMPILED_FROM)
    )
    while position < end:
        data = file.read_at(position, min(length, end - position))
        scan = scan_window(data, verify=verify, compiled=compiled)
        headers, damage = scan.headers, scan.damage
        is_short = len(data) < min(length, end - position)
        at_end = is_short or position + len(data) >= end
        if damage is None and at_end and scan.stopped_at < len(data):
            left = len(data) - scan.stopped_at
            reason = f"a batch of {scan.wanted} bytes is cut off" if scan.wanted else "too few bytes for a batch"
            damage = CorruptLog(f"{reason}: {left} bytes are left", position=scan.stopped_at)
        elif damage is None and is_short:
            damage = CorruptLog(f"the file ends {end - position - len(data)} bytes too early", position=len(data))
        number, disorder = _first_disorder(headers, base_offset, last_offset)
        if disorder:
            damage = CorruptLog(disorder, position=headers[number].position)
            headers = headers[:number]
        if headers:
            last_offset = headers[-1].last_offset
        if damage is not None:
            yield ScannedWindow(position, data, headers, damage.within(file.path, position))
            return
        if headers:
            yield ScannedWindow(position, data, headers)
        if pause is not None:
            pause()
        position += scan.stopped_at
        length = max(window_bytes, scan.wanted)


def _first_disorder(headers: Sequence[BatchHeader], base_offset: int, last_offset: int) -> tuple[int, str]:
    """The first batch whose offsets cannot be, and why; an empty reason if they all can."""
    if isinstance(headers, BatchTable):
        suspect = headers.first_disorder(base_offset, last_offset, MAX_RELATIVE_OFFSET)
        if suspect is None:
            return 0, ""
        before = headers[suspect - 1].last_offset if suspect else last_offset
        return suspect, _disorder(headers[suspect], base_offset, before)
    for number, header in enumerate(headers):
        if disorder := _disorder(header, base_offset, last_offset):
            return number, disorder
        last_offset = header.last_offset
    return 0, ""


def _disorder(header: BatchHeader, base_offset: int, last_offset: int) -> str:
    if header.last_offset_delta < 0:
        return f"negative last offset delta {header.last_offset_delta}"
    if header.base_offset <= last_offset:
        if last_offset < base_offset:
            return f"offset {header.base_offset} lies before the segment's base offset {base_offset}"
        return f"offset {header.base_offset} follows offset {last_offset}"
    if header.last_offset - base_offset > MAX_RELATIVE_OFFSET:
        return f"offset {header.last_offset} lies too far behind the segment's base offset {base_offset}"
    return ""
