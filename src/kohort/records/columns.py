"""Whole segments into columns: the decoding of `batch.py` and `offsets_topic.py`, done by compiled loops over bytes.

`decode` takes a window of a segment and returns `Columns`: one row a record, as arrays. Keys are interned: each
distinct key gets a number in a `KeyTable` that lives as long as its owner wants, so that a replay works on small
integers and a key's text is read once. A window may end inside a batch; what was not consumed is given again with the
next bytes.

Compressed batches are decompressed and batches of formats 0 and 1 are rewritten in the layout of format 2, both behind
the window's own bytes; from there on every batch is alike.
"""

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kohort.errors import CorruptLog
from kohort.records import kernels
from kohort.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    SMALLEST_RECORD,
    BatchHeader,
    RecordBatch,
    check_record_count,
    claimed_end,
    read_batch,
    read_header,
    read_records,
    resume_position,
    undecided,
)
from kohort.records.compression import decompress
from kohort.records.kernels import Ints, Longs
from kohort.records.key_table import KeyTable
from kohort.records.machine import Bytes
from kohort.records.offsets_topic import (
    OffsetCommitValue,
)
from kohort.records.primitives import text

Number = TypeVar("Number", bound=np.generic)

_SMALLEST_BATCH = 26
_MOST_DECOMPRESSED = 32 * 1024 * 1024
"""A window ends behind the batch with which its compressed batches have grown to this."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Records as columns. `heads` has a row a batch (columns named in `kernels`), the others a row a record."""

    data: Bytes
    heads: Longs
    offsets: Longs
    timestamps: Longs
    key_ids: Ints
    value_starts: Longs
    value_sizes: Ints
    batches: Ints
    record_sizes: Ints
    keys: KeyTable

    def __len__(self) -> int:
        return len(self.offsets)

    def without_batches(self, bad: list[int], first_rows: Longs) -> "Columns":
        """The same columns without the rows of some batches, which are left in `heads`."""
        keep = np.ones(len(self), np.bool_)
        for batch in bad:
            keep[first_rows[batch] : first_rows[batch + 1]] = False
        return self._rows(keep)

    def until(self, timestamp: int) -> tuple["Columns", bool]:
        """The columns before the first batch whose time is later than `timestamp`, and whether there was one."""
        later = np.flatnonzero(self.heads[:, kernels.MAX_TIMESTAMP] > timestamp)
        return (self._first_batches(int(later[0])), True) if len(later) else (self, False)

    def before(self, position: int) -> "Columns":
        """The batches that begin before a byte of the window, and their records."""
        count = int(np.searchsorted(self.heads[:, kernels.POSITION], position))
        return self if count == len(self.heads) else self._first_batches(count)

    def _first_batches(self, count: int) -> "Columns":
        kept = self._rows(slice(0, int(np.searchsorted(self.batches, count))))
        return replace(kept, heads=self.heads[:count])

    def chosen(self, rows: NDArray[np.bool_]) -> "Columns":
        """Some of the records; the batches are all there."""
        return self._rows(rows)

    def _rows(self, chosen: slice | NDArray[np.bool_]) -> "Columns":
        return Columns(
            self.data,
            self.heads,
            self.offsets[chosen],
            self.timestamps[chosen],
            self.key_ids[chosen],
            self.value_starts[chosen],
            self.value_sizes[chosen],
            self.batches[chosen],
            self.record_sizes[chosen],
            self.keys,
        )

    def of_kind(self, kind: int) -> NDArray[np.bool_]:
        """Which records have a key of some kind; control records have none."""
        has_key = self.key_ids != kernels.NO_KEY
        found: NDArray[np.bool_] = has_key.copy()
        found[has_key] = self.keys.kinds[self.key_ids[has_key]] == kind
        return found

    def value(self, row: int) -> bytes | None:
        size = int(self.value_sizes[row])
        start = int(self.value_starts[row])
        return None if size < 0 else self.data[start : start + size].tobytes()


class OffsetValues:
    """Values of offset commits as columns, as far as the kernel reads them (`plain`); a tombstone's size is below 0."""

    def __init__(self, data: Bytes, starts: Longs, sizes: Ints) -> None:
        count = len(starts)
        self.data = data
        self.versions = np.zeros(count, np.int16)
        self.offsets: Longs = np.zeros(count, np.int64)
        self.leader_epochs: Ints = np.zeros(count, np.int32)
        self.metadata_starts: Longs = np.zeros(count, np.int64)
        self.metadata_sizes: Ints = np.zeros(count, np.int32)
        self.commit_timestamps: Longs = np.zeros(count, np.int64)
        self.expire_timestamps: Longs = np.zeros(count, np.int64)
        self.topic_id_starts: Longs = np.full(count, -1)
        self.plain = np.zeros(count, np.bool_)
        self.tombstones = sizes < 0
        kernels.decode_offset_values(
            data,
            starts,
            sizes,
            self.versions,
            self.offsets,
            self.leader_epochs,
            self.metadata_starts,
            self.metadata_sizes,
            self.commit_timestamps,
            self.expire_timestamps,
            self.topic_id_starts,
            self.plain,
        )

    @property
    def usable(self) -> NDArray[np.bool_]:
        """What needs no second look: plain values and tombstones."""
        return self.plain | self.tombstones

    def chosen(self, rows: NDArray[np.bool_]) -> "OffsetValues":
        """Some of these values."""
        kept = copy.copy(self)
        for name, values in vars(self).items():
            if name != "data":
                setattr(kept, name, values[rows])
        return kept

    def topic_ids(self, chosen: NDArray[np.bool_]) -> list[UUID | None] | None:
        """The topic ids of the chosen values; None if none of them has one."""
        starts = self.topic_id_starts[chosen]
        if not np.any(starts >= 0):
            return None
        known: dict[bytes, UUID | None] = {bytes(16): None}
        raw = [self.data[start : start + 16].tobytes() if start >= 0 else bytes(16) for start in starts.tolist()]
        for one in set(raw) - known.keys():
            known[one] = UUID(bytes=one)
        return [known[one] for one in raw]

    def decoded(self, chosen: NDArray[np.bool_]) -> Iterator[OffsetCommitValue]:
        """The chosen values, all of them plain, as the scalar codec gives them."""
        starts, sizes = self.metadata_starts[chosen], self.metadata_sizes[chosen]
        metadata = [
            text(self.data[start : start + size].tobytes()) if size else ""
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]
        return map(
            OffsetCommitValue._make,
            zip(
                self.offsets[chosen].tolist(),
                metadata,
                self.commit_timestamps[chosen].tolist(),
                self.leader_epochs[chosen].tolist(),
                self.expire_timestamps[chosen].tolist(),
                self.topic_ids(chosen) or repeat(None),
                self.versions[chosen].tolist(),
                strict=False,
            ),
        )


class Buffers:
    """Memory that one window's columns leave to the next; without it, much of the time goes into fresh pages."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def take(self, name: str, count: int, dtype: type[Number], width: int = 1) -> NDArray[Number]:
        """An array for so many items, of a row each where `width` is more than 1. What is in it is left over."""
        size = count * width
        if name not in self._arrays or len(self._arrays[name]) < size:
            self._arrays[name] = np.empty(size + size // 4, dtype)
        taken = self._arrays[name][:size]
        return taken if width == 1 else taken.reshape(count, width)


@dataclass(frozen=True, slots=True)
class Window:
    """The outcome of decoding a window: its columns, how many bytes were used, and whether nothing behind is usable."""

    columns: Columns
    consumed: int
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Frames:
    """The batches of a window, unopened: those with a sound frame, where the damaged ones begin, and how it ended."""

    heads: Longs
    damaged: list[int]
    consumed: int
    lost: bool


def scan(data: Bytes, *, final: bool = True, buffers: Buffers | None = None) -> Frames:
    """What `decode` would walk over, batch by batch, without a look at any record; damage is passed over."""
    decoder = _Decoder(data, KeyTable(), final, buffers or Buffers())
    heads, consumed, lost = decoder.frames()
    return Frames(heads, [damage.position for damage in decoder.damage], consumed, lost)


def decode(
    data: Bytes,
    keys: KeyTable,
    *,
    final: bool = True,
    on_damage: Callable[[CorruptLog], None] | None = None,
    buffers: Buffers | None = None,
) -> Window:
    """The records of all whole batches in `data`, an array of bytes.

    With `final`, nothing follows `data`, so a batch that is cut off is damage. Damage is raised; or, with `on_damage`,
    reported, and decoding goes on behind it, just as `read_batches` does. If nothing is consumed of a window that is
    not final, a larger one is needed; if not all is consumed of one that is, the rest is to be given again. With
    `buffers`, the columns are good until those are used again.
    """
    decoder = _Decoder(data, keys, final, buffers or Buffers())
    window = decoder.run()
    for damage in sorted(decoder.damage, key=lambda found: found.position):
        if on_damage is None:
            raise damage
        on_damage(damage)
    return window


class _Decoder:
    """One call of `decode`: scan for sound batches, lay their bodies out, parse the records."""

    def __init__(self, data: Bytes, keys: KeyTable, final: bool, buffers: Buffers) -> None:
        self.damage: list[CorruptLog] = []
        self._data = data
        self._view = data.data
        self._keys = keys
        self._final = final
        self._buffers = buffers

    def run(self) -> Window:
        heads, consumed, lost = self.frames()
        heads, bodies, data, left = self._lay_out(heads)
        if left is not None:
            # The rest is for another call, which will find its damage again.
            self.damage = [damage for damage in self.damage if damage.position < left]
            consumed, lost = left, False
        return Window(self._parse(data, heads, bodies), consumed, lost)

    def frames(self) -> tuple[Longs, int, bool]:
        """The batches with a sound frame, the position behind them, and whether the walk had to end there."""
        found = []
        position, end = 0, len(self._data)
        room = self._buffers.take("heads", end // _SMALLEST_BATCH + 1, np.int64, kernels.HEAD_WIDTH)
        while position < end:
            count, position, status = kernels.scan_batches(self._data, position, end, room)
            found.append(room[:count])
            room = room[count:]
            if status == kernels.COMPLETE:
                continue
            if not self._final and (
                status == kernels.CUT_OFF or undecided(self._view, claimed_end(self._view, position))
            ):
                break
            self._report(position, functools.partial(read_header, self._view, position))
            resumed = resume_position(self._view, position)
            if resumed is None:
                return _joined(found), end, True
            position = resumed
        return _joined(found), position, False

    def _report(self, position: int, definition: Callable[[], object]) -> None:
        """Have the scalar codec say what is wrong with the batch at `position`."""
        try:
            definition()
        except CorruptLog as damage:
            self.damage.append(CorruptLog(damage.reason, position=position))
        else:
            raise AssertionError(f"the kernels refuse a batch at byte {position} that the scalar codec reads")

    def _lay_out(self, heads: Longs) -> tuple[Longs, Longs, Bytes, int | None]:
        """Where each batch's records stand in which data, uncompressed and in the layout of format 2.

        What decompresses to more than a window should hold is left: the last item is then the byte where that begins.
        """
        positions = heads[:, kernels.POSITION]
        bodies = np.stack([positions + HEADER_SIZE, positions + heads[:, kernels.SIZE]])
        special = (heads[:, kernels.MAGIC] < 2) | (heads[:, kernels.ATTRIBUTES] & CODEC_MASK != 0)
        special |= heads[:, kernels.RECORD_COUNT] * SMALLEST_RECORD > bodies[1] - bodies[0]
        extra, behind = [self._data], len(self._data)
        left = None
        for b in np.flatnonzero(special):
            if behind - len(self._data) > _MOST_DECOMPRESSED:
                heads, bodies, left = heads[:b], bodies[:, :b], int(positions[b])
                break
            header = read_header(self._view, int(positions[b]), verify=False)
            try:
                body = self._legacy_body(header, heads[b]) if header.magic < 2 else self._body(header)
            except CorruptLog as damage:
                # The batch stays, for its time still counts, but it has no records.
                self.damage.append(CorruptLog(damage.reason, position=header.position))
                heads[b, kernels.RECORD_COUNT] = 0
                heads[b, kernels.MAX_TIMESTAMP] = header.max_timestamp
                body = b""
            bodies[:, b] = behind, behind + len(body)
            extra.append(np.frombuffer(body, np.uint8))
            behind += len(body)
        data = np.concatenate(extra) if len(extra) > 1 else self._data
        return heads, bodies, data, left

    def _body(self, header: BatchHeader) -> bytes:
        body = decompress(header.codec, self._data[header.position + HEADER_SIZE : header.end].tobytes())
        check_record_count(header, body)
        return body

    def _legacy_body(self, header: BatchHeader, head: Longs) -> bytes:
        """The records of a message of an old format, written as those of format 2; its row is filled in."""
        batch = read_batch(self._data[header.position : header.end].tobytes())
        rewritten = RecordBatch.build(batch.records)
        encoded = rewritten.encode()
        new = rewritten.header
        head[kernels.BASE_OFFSET] = new.base_offset
        head[kernels.LEADER_EPOCH] = new.partition_leader_epoch
        head[kernels.ATTRIBUTES] = new.attributes
        head[kernels.LAST_OFFSET_DELTA] = new.last_offset_delta
        head[kernels.BASE_TIMESTAMP] = new.base_timestamp
        head[kernels.MAX_TIMESTAMP] = new.max_timestamp
        head[kernels.PRODUCER_ID] = new.producer_id
        head[kernels.PRODUCER_EPOCH] = new.producer_epoch
        head[kernels.BASE_SEQUENCE] = new.base_sequence
        head[kernels.RECORD_COUNT] = new.record_count
        return encoded[HEADER_SIZE:]

    def _parse(self, data: Bytes, heads: Longs, bodies: Longs) -> Columns:
        counts = heads[:, kernels.RECORD_COUNT]
        first_rows = np.zeros(len(heads) + 1, np.int64)
        np.cumsum(counts, out=first_rows[1:])
        take = self._buffers.take
        rows = int(first_rows[-1])
        starts, ends = np.ascontiguousarray(bodies[0]), np.ascontiguousarray(bodies[1])
        columns = Columns(
            data=data,
            heads=heads,
            offsets=take("offsets", rows, np.int64),
            timestamps=take("timestamps", rows, np.int64),
            key_ids=take("key_ids", rows, np.int32),
            value_starts=take("value_starts", rows, np.int64),
            value_sizes=take("value_sizes", rows, np.int32),
            batches=take("batches", rows, np.int32),
            record_sizes=take("record_sizes", rows, np.int32),
            keys=self._keys,
        )
        malformed = []
        batch = 0
        while batch < len(heads):
            batch = self._keys.decode_into(columns, starts, ends, first_rows, batch)
            if batch < len(heads):
                self._report_malformed(int(heads[batch, kernels.POSITION]))
                malformed.append(batch)
                batch += 1
        return columns if not malformed else columns.without_batches(malformed, first_rows)

    def _report_malformed(self, position: int) -> None:
        header = read_header(self._view, position, verify=False)
        data = self._data[header.position : header.end].tobytes()
        self._report(position, lambda: read_records(replace(header, position=0), data))


def _joined(found: list[Longs]) -> Longs:
    if len(found) == 1:
        return found[0]
    return np.concatenate([np.empty((0, kernels.HEAD_WIDTH), np.int64), *found])
