"""A stretch of a segment file: the batches that begin between two bytes, however the file was cut.

Stretches that touch hold each batch once, and all of them together what a walk over the whole file finds, damage
included. So where a stretch begins is not guessed from the bytes there, which may be somebody's metadata that looks
like a batch: the frames from the beginning of the file on lead to its first batch, at the speed of a checksum.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kohort.errors import CorruptLog
from kohort.log.place import OpenFile
from kohort.log.source import OnDamage
from kohort.records import kernels
from kohort.records.batch import CONTROL, read_batch
from kohort.records.columns import Buffers, Columns, Frames, decode, scan
from kohort.records.control import ControlType, decode_control_type
from kohort.records.kernels import Longs
from kohort.records.key_table import KeyTable
from kohort.records.machine import Bytes

WINDOW_BYTES = 16 * 1024 * 1024
_SMALLEST_GROWTH = 64 * 1024


class Marker(NamedTuple):
    """The end of a transaction."""

    producer_id: int
    commit: bool
    offset: int
    timestamp: int


@dataclass(slots=True)
class _Window:
    """Some bytes of a file, from `position` on. Whoever looked at them says how many are done with."""

    position: int
    data: Bytes
    final: bool
    consumed: int = 0
    lost: bool = False

    def use(self, consumed: int, lost: bool) -> None:
        self.consumed, self.lost = consumed, lost


def _windows(file: OpenFile, size: int, start: int, end: int) -> Iterator[_Window]:
    """Windows over the batches that begin from `start` to before `end`, of a file that has `size` bytes.

    The last ones may reach behind `end`, as far as it takes to see whole what begins before it.
    """
    buffer: Bytes = np.empty(0, np.uint8)
    position, length, limit = start, WINDOW_BYTES, end
    while position < end:
        wanted = min(length, limit - position)
        if wanted > len(buffer):
            buffer = np.empty(wanted, np.uint8)
        got = _read(file, position, buffer[:wanted].data)
        if got < wanted:  # somebody cut the file
            size = position + got
            end = min(end, size)
        if not got:
            return
        window = _Window(position, buffer[:got], final=position + got >= size)
        yield window
        if window.lost:
            return
        position += window.consumed
        length, limit = (WINDOW_BYTES, end) if window.consumed else (max(2 * got, _SMALLEST_GROWTH), size)


def _read(file: OpenFile, position: int, room: memoryview) -> int:
    file.seek(position)
    got = 0
    while got < len(room):
        count = file.readinto(room[got:])
        if not count:
            break
        got += count
    return got


def stretch_columns(
    file: OpenFile,
    size: int,
    start: int,
    end: int,
    keys: Callable[[], KeyTable],
    on_damage: OnDamage,
    *,
    is_border: bool = False,
) -> Iterator[tuple[int, Columns]]:
    """The sound batches of a stretch as columns, a window at a time, each with the byte where its window begins.

    Columns are good until the next ones are asked for. The key table is asked for anew with every window. Where a
    batch is known to begin at `start`, `is_border`, the file is not looked at before that.
    """
    border = start if is_border else first_border(file, size, start)
    if border is None:
        return
    buffers = Buffers()
    for window in _windows(file, size, border, end):
        position = window.position
        found: list[CorruptLog] = []
        decoded = decode(window.data, keys(), final=window.final, on_damage=found.append, buffers=buffers)
        if decoded.lost:
            found[-1] = _told_as_lost(found[-1], size - position)
        for damage in found:
            if position + damage.position < end:
                on_damage(damage.within("", position))
        yield position, decoded.columns.before(end - position)
        window.use(decoded.consumed, decoded.lost)


def _told_as_lost(damage: CorruptLog, end: int) -> CorruptLog:
    left = end - damage.position
    return CorruptLog(
        f"{damage.reason}; no batch can be found in the {left} bytes from there on", position=damage.position
    )


def first_border(file: OpenFile, size: int, start: int) -> int | None:
    """Where the first batch begins at or behind the byte `start`; None if the walk over the file is lost before."""
    buffers = Buffers()
    for window in _windows(file, size, 0, start):
        frames = scan(window.data, final=window.final, buffers=buffers)
        window.use(frames.consumed, frames.lost)
        if frames.lost or window.position + frames.consumed >= start:
            border = _first_at(frames, start - window.position)
            return None if border is None else window.position + border
    return 0


def batch_borders(file: OpenFile, size: int, start: int) -> Iterator[tuple[Longs, Longs, Longs]]:
    """Where the sound batches from a border on begin and end, and the offsets behind them, a window at a time.

    What is cut off at the end is not there yet.
    """
    buffers = Buffers()
    for window in _windows(file, size, start, size):
        frames = scan(window.data, final=False, buffers=buffers)
        heads = frames.heads
        starts = heads[:, kernels.POSITION] + window.position
        # A message of the old formats, also one that holds others, is told by its last offset.
        deltas = np.where(heads[:, kernels.MAGIC] == 2, heads[:, kernels.LAST_OFFSET_DELTA], 0)
        nexts = heads[:, kernels.BASE_OFFSET] + deltas + 1
        yield starts, starts + heads[:, kernels.SIZE], nexts
        if window.final:
            return
        window.use(frames.consumed, frames.lost)


def _first_at(frames: Frames, start: int) -> int | None:
    """Where in a window the first batch begins, sound or damaged, at or behind `start`."""
    sound = frames.heads[:, kernels.POSITION]
    begun = [*sound[np.searchsorted(sound, start) :][:1].tolist(), *(at for at in frames.damaged if at >= start)]
    return min(begun, default=None if frames.lost else frames.consumed)


def markers(file: OpenFile, size: int, start: int, end: int) -> Iterator[Marker]:
    """Every commit and abort in the batches that begin from `start`, where one does, to before `end`."""
    buffers = Buffers()
    for window in _windows(file, size, start, end):
        frames = scan(window.data, final=window.final, buffers=buffers)
        control = (frames.heads[:, kernels.MAGIC] == 2) & (frames.heads[:, kernels.ATTRIBUTES] & CONTROL != 0)
        for head in frames.heads[control]:
            at = int(head[kernels.POSITION])
            if window.position + at >= end:
                break
            marker = _marker(window.data[at : at + int(head[kernels.SIZE])].tobytes())
            if marker is not None:
                yield marker
        window.use(frames.consumed, frames.lost)


def _marker(data: bytes) -> Marker | None:
    """The marker in a control batch; None if it holds another control record, or none that can be read."""
    try:
        batch = read_batch(data)
    except CorruptLog:
        return None
    control_type = decode_control_type(batch.records[0].key) if batch.records else None
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    record = batch.records[0]
    return Marker(batch.header.producer_id, control_type == ControlType.COMMIT, record.offset, record.timestamp)
