"""Whole segments into columns: the decoding of `batch.py` and `offsets_topic.py`, done by compiled loops over bytes.

`decode` takes a window of a segment and returns `Columns`: one row a record, as arrays. Keys are interned: each
distinct key gets a number in a `KeyTable` that lives as long as its owner wants, so that a replay works on small
integers and a key's text is read once. A window may end inside a batch; what was not consumed is given again with the
next bytes.

Compressed batches are decompressed and batches of formats 0 and 1 are rewritten in the layout of format 2, both behind
the window's own bytes; from there on every batch is alike.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kohort.errors import CorruptLog
from kohort.records import kernels
from kohort.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    RecordBatch,
    claimed_end,
    read_batch,
    read_header,
    read_records,
    resume_position,
)
from kohort.records.compression import decompress
from kohort.records.kernels import Bytes, Ints, Longs, Slots
from kohort.records.offsets_topic import CoordinatorKey, GroupKey, Key, OffsetKey, UnknownKey, decode_key, encode_key

OFFSET_KIND, GROUP_KIND, UNREADABLE_KIND = 1, 2, -1
"""Kinds of key by number: the record's type, with both types of offset keys as one; -1 is no key that we can read."""

Number = TypeVar("Number", bound=np.generic)

_CODEC_MASK = 0x07
_SMALLEST_BATCH = 26


class KeyTable:
    """Distinct keys, numbered in the order of their first appearance."""

    def __init__(self) -> None:
        self.size = 0
        self._slots: Slots = np.full(1 << 12, kernels.EMPTY_SLOT)
        self._hashes: Slots = np.empty(1 << 11, np.uint64)
        self._starts: Longs = np.zeros((1 << 11) + 1, np.int64)
        self._arena: Bytes = np.empty(1 << 17, np.uint8)
        self._shapes = np.empty(1 << 11, np.int8)
        self._kinds = np.empty(0, np.int8)
        self._canonical: Ints = np.empty(0, np.int32)

    def __getstate__(self) -> tuple[bytes, Longs]:
        return self._arena[: self._starts[self.size]].tobytes(), self._starts[: self.size + 1].copy()

    def __setstate__(self, state: tuple[bytes, Longs]) -> None:
        self.__init__()  # type: ignore[misc]  # a table is rebuilt from its keys, which are all that travels
        raw, starts = state
        self.intern_all(np.frombuffer(raw, np.uint8), starts)

    def raw(self, key: int) -> bytes:
        return self._arena[self._starts[key] : self._starts[key + 1]].tobytes()

    def key(self, key: int) -> Key:
        return decode_key(self.raw(key))

    def intern(self, raw: bytes) -> int:
        return int(self.intern_all(np.frombuffer(raw, np.uint8), np.array([0, len(raw)]))[0])

    def intern_all(self, data: Bytes, bounds: Longs) -> Longs:
        """The numbers of the keys that stand between `bounds` in `data`."""
        self.reserve(len(bounds) - 1, int(bounds[-1] - bounds[0]))
        ids = np.empty(len(bounds) - 1, np.int64)
        self.size = kernels.intern_all(
            data, bounds, self._slots, self._hashes, self._starts, self._arena, self._shapes, self.size, ids
        )
        return ids

    def intern_table(self, other: "KeyTable") -> Longs:
        """The numbers here of all keys of another table."""
        return self.intern_all(other._arena, other._starts[: other.size + 1])

    def reserve(self, keys: int, key_bytes: int) -> None:
        """Make room for so many more keys."""
        wanted = self.size + keys
        if wanted > len(self._hashes):
            room = 1 << (wanted - 1).bit_length()
            self._hashes = _grown(self._hashes, room)
            self._starts = _grown(self._starts, room + 1)
            self._shapes = _grown(self._shapes, room)
        if 2 * wanted > len(self._slots):
            self._slots = np.full(1 << (2 * wanted - 1).bit_length(), kernels.EMPTY_SLOT)
            kernels.rehash(self._hashes, self.size, self._slots)
        used = int(self._starts[self.size])
        if used + key_bytes > len(self._arena):
            self._arena = _grown(self._arena, 1 << (used + key_bytes - 1).bit_length())

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each key."""
        self._classify()
        return self._kinds

    @property
    def canonical(self) -> Ints:
        """For each key the one that means the same thing.

        An offset key of type 0, one with bytes behind it, or one whose UTF-8 is mended on reading is the same key to
        Kafka as its plain form.
        """
        self._classify()
        return self._canonical

    def _classify(self) -> None:
        known = len(self._kinds)
        while known < self.size:
            shapes = self._shapes[known : self.size]
            kinds = np.where(shapes == kernels.CLEAN_OFFSET, OFFSET_KIND, GROUP_KIND).astype(np.int8)
            canonical = np.arange(known, self.size, dtype=np.int32)
            self._kinds = np.concatenate([self._kinds, kinds])
            self._canonical = np.concatenate([self._canonical, canonical])
            odd = known + np.flatnonzero(shapes == kernels.ODD)
            known = self.size
            for number in odd:
                self._classify_odd(int(number))

    def _classify_odd(self, number: int) -> None:
        key = self.key(number)
        match key:
            case OffsetKey():
                self._kinds[number] = OFFSET_KIND
                plain = self.intern(encode_key(OffsetKey(key.group, key.topic, key.partition)))
            case GroupKey():
                self._kinds[number] = GROUP_KIND
                plain = self.intern(encode_key(GroupKey(key.group)))
            case CoordinatorKey():
                self._kinds[number] = key.version
                return
            case UnknownKey():
                self._kinds[number] = UNREADABLE_KIND
                return
        self._canonical[number] = plain

    def decode_into(self, columns: "Columns", starts: Longs, ends: Longs, first_rows: Longs, batch: int) -> int:
        """Parse batches from `batch` on into rows; returns the first one that was not parsed."""
        stopped, self.size = kernels.decode_records(
            columns.data,
            columns.heads,
            starts,
            ends,
            first_rows,
            batch,
            self._slots,
            self._hashes,
            self._starts,
            self._arena,
            self._shapes,
            self.size,
            columns.offsets,
            columns.timestamps,
            columns.key_ids,
            columns.value_starts,
            columns.value_sizes,
            columns.batches,
        )
        return int(stopped)


def _grown(array: NDArray[Number], size: int) -> NDArray[Number]:
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown


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
        if not len(later):
            return self, False
        end = int(np.searchsorted(self.batches, later[0]))
        return self._rows(slice(0, end)), True

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
            self.keys,
        )

    def value(self, row: int) -> bytes | None:
        size = int(self.value_sizes[row])
        start = int(self.value_starts[row])
        return None if size < 0 else self.data[start : start + size].tobytes()


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
    not final, a larger one is needed. With `buffers`, the columns are good until those are used again.
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
        heads, consumed, lost = self._scan()
        heads, bodies, data = self._lay_out(heads)
        return Window(self._parse(data, heads, bodies), consumed, lost)

    def _scan(self) -> tuple[Longs, int, bool]:
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
            if not self._final and (status == kernels.CUT_OFF or self._undecided(position)):
                break
            self._report(position, functools.partial(read_header, self._view, position))
            resumed = resume_position(self._view, position)
            if resumed is None:
                return _joined(found), end, True
            position = resumed
        return _joined(found), position, False

    def _undecided(self, position: int) -> bool:
        """Whether it takes bytes behind this window to tell if the walk can go on behind a damaged batch."""
        behind = claimed_end(self._view, position)
        if behind is None:
            return False
        if behind + LOG_OVERHEAD > len(self._view):
            return True
        next_end = claimed_end(self._view, behind)
        return next_end is not None and next_end > len(self._view)

    def _report(self, position: int, definition: Callable[[], object]) -> None:
        """Have the scalar codec say what is wrong with the batch at `position`."""
        try:
            definition()
        except CorruptLog as damage:
            self.damage.append(CorruptLog(damage.reason, position=position))
        else:
            raise AssertionError(f"the kernels refuse a batch at byte {position} that the scalar codec reads")

    def _lay_out(self, heads: Longs) -> tuple[Longs, Longs, Bytes]:
        """Where each batch's records stand in which data, uncompressed and in the layout of format 2."""
        positions = heads[:, kernels.POSITION]
        bodies = np.stack([positions + HEADER_SIZE, positions + heads[:, kernels.SIZE]])
        special = (heads[:, kernels.MAGIC] < 2) | (heads[:, kernels.ATTRIBUTES] & _CODEC_MASK != 0)
        extra, behind = [self._data], len(self._data)
        sound = heads[:, kernels.RECORD_COUNT] <= bodies[1] - bodies[0]
        for b in np.flatnonzero(special | ~sound):
            header = read_header(self._view, int(positions[b]), verify=False)
            try:
                body = self._legacy_body(header, heads[b]) if header.magic < 2 else self._body(header)
            except CorruptLog as damage:
                self.damage.append(CorruptLog(damage.reason, position=header.position))
                sound[b] = False
                continue
            sound[b] = True
            bodies[:, b] = behind, behind + len(body)
            extra.append(np.frombuffer(body, np.uint8))
            behind += len(body)
        data = np.concatenate(extra) if len(extra) > 1 else self._data
        return (heads, bodies, data) if sound.all() else (heads[sound], bodies[:, sound], data)

    def _body(self, header: BatchHeader) -> bytes:
        body = decompress(header.codec, self._data[header.position + HEADER_SIZE : header.end].tobytes())
        if header.record_count > len(body):
            raise CorruptLog(f"{header.record_count} records claimed in {len(body)} bytes")
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
            keys=self._keys,
        )
        malformed = []
        batch = 0
        while batch < len(heads):
            self._keys.reserve(int(counts[batch]), int(ends[batch] - starts[batch]))
            stopped = self._keys.decode_into(columns, starts, ends, first_rows, batch)
            if stopped == batch:
                self._report_malformed(int(heads[batch, kernels.POSITION]))
                malformed.append(batch)
                stopped += 1
            batch = stopped
        return columns if not malformed else columns.without_batches(malformed, first_rows)

    def _report_malformed(self, position: int) -> None:
        header = read_header(self._view, position, verify=False)
        data = self._data[header.position : header.end].tobytes()
        self._report(position, lambda: read_records(replace(header, position=0), data))


def _joined(found: list[Longs]) -> Longs:
    if len(found) == 1:
        return found[0]
    return np.concatenate([np.empty((0, kernels.HEAD_WIDTH), np.int64), *found])
