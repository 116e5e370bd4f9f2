"""The compiled loops behind `columns.py`: batches found and checked, records parsed, keys interned, values read.

They work on arrays of bytes and numbers only and raise nothing: where something does not add up they say so, and the
scalar codec, which is the definition, is asked for the reason. Compiled code is kept on disk, so that only the first
run on a machine waits for the compiler.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from kohort.records.batch import CONTROL, HEADER_SIZE, LOG_APPEND_TIME, LOG_OVERHEAD, MAX_BATCH_BYTES
from kohort.records.machine import (
    CACHE,
    DATA,
    Bytes,
    byte_at,
    copy,
    crc32,
    crc32c,
    int16_at,
    int32_at,
    int64_at,
    load64,
    same,
)

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Slots = NDArray[np.uint64]

_I64 = types.int64
_LONGS = types.int64[::1]
_INTS = types.int32[::1]
_TABLE_TYPES = (types.uint64[::1], types.uint64[::1], _LONGS, types.uint8[::1], types.int8[::1])
"""A key table's slots, hashes, starts, arena and shapes."""

# Columns of the table of batches.
POSITION, SIZE, BASE_OFFSET, LEADER_EPOCH, MAGIC, ATTRIBUTES, LAST_OFFSET_DELTA = 0, 1, 2, 3, 4, 5, 6
BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, RECORD_COUNT = 7, 8, 9, 10, 11, 12
MARKER, COORDINATOR_EPOCH = 13, 14
HEAD_WIDTH = 15

# What a walk over batches ended with.
COMPLETE, CUT_OFF, DAMAGED, TABLE_FULL = 0, 1, 2, 3

NO_KEY = -1
EMPTY_SLOT = np.uint64(0xFFFFFFFFFFFFFFFF)
NO_MARKER = -1

# Shape of an interned key, as far as the kernel can tell.
ODD, CLEAN_OFFSET, CLEAN_GROUP = 0, 1, 2

_CRC_START = 21
_UUID_BYTES = 16
_LEGACY_LEAST = 14
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(types.UniTuple(_I64, 3)(DATA, _I64, _I64, _I64[:, ::1]), cache=CACHE, nogil=True)
def scan_batches(data: Bytes, start: int, end: int, heads: Longs) -> Any:
    """Fill `heads` with the sound batches from `start` on; returns how many, where the scan stopped, and why.

    Batches of formats 0 and 1 are checked too, but only their position, size and magic are filled in.
    """
    position, count = start, 0
    while position < end and count < len(heads):
        if end - position < LOG_OVERHEAD:
            return count, position, CUT_OFF
        length = int32_at(data, position + 8)
        size = LOG_OVERHEAD + length
        if length < _LEGACY_LEAST or size > MAX_BATCH_BYTES:
            return count, position, DAMAGED
        if size > end - position:
            return count, position, CUT_OFF
        magic = data[position + 16]
        head = heads[count]
        head[POSITION] = position
        head[SIZE] = size
        head[MAGIC] = magic
        head[BASE_OFFSET] = int64_at(data, position)
        if head[BASE_OFFSET] < 0:
            return count, position, DAMAGED
        head[MARKER] = NO_MARKER
        head[COORDINATOR_EPOCH] = -1
        if magic == 2:
            if size < HEADER_SIZE:
                return count, position, DAMAGED
            crc = np.uint32(int32_at(data, position + 17))
            if crc32c(data, position + _CRC_START, position + size) != crc:
                return count, position, DAMAGED
            head[LEADER_EPOCH] = int32_at(data, position + 12)
            head[ATTRIBUTES] = int16_at(data, position + 21)
            head[LAST_OFFSET_DELTA] = int32_at(data, position + 23)
            head[BASE_TIMESTAMP] = int64_at(data, position + 27)
            head[MAX_TIMESTAMP] = int64_at(data, position + 35)
            head[PRODUCER_ID] = int64_at(data, position + 43)
            head[PRODUCER_EPOCH] = int16_at(data, position + 51)
            head[BASE_SEQUENCE] = int32_at(data, position + 53)
            head[RECORD_COUNT] = int32_at(data, position + 57)
            if head[RECORD_COUNT] < 0:
                return count, position, DAMAGED
        else:
            if magic > 2 or (magic == 1 and length < _LEGACY_LEAST + 8):
                return count, position, DAMAGED
            crc = np.uint32(int32_at(data, position + 12))
            if crc32(data, position + 16, position + size) != crc:
                return count, position, DAMAGED
        position += size
        count += 1
    return count, position, COMPLETE


@njit(types.UniTuple(_I64, 2)(DATA, _I64, _I64, _I64), cache=CACHE, nogil=True)
def _long_varint(data: Bytes, position: int, end: int, bits: int) -> Any:
    """A zigzag varint of up to so many bits, and the position behind it, which is -1 where there is none."""
    raw = np.uint64(0)
    shift = 0
    while position < end and shift < bits:
        byte = np.uint64(byte_at(data, position))
        position += 1
        raw |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        shift += 7
        if byte < 0x80:
            if bits == 32:
                raw &= np.uint64(0xFFFFFFFF)
            value = np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1))
            return value, position
    return 0, -1


@njit(inline="always")
def _varint(data: Any, position: Any, end: Any, bits: Any = 32) -> Any:
    """Most numbers have one byte, some two; the others take the long way."""
    if position + 1 < end:
        first = np.int64(byte_at(data, position))
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        second = np.int64(byte_at(data, position + 1))
        if second < 0x80:
            raw = (first & 0x7F) | (second << 7)
            return (raw >> 1) ^ -(raw & 1), position + 2
    return _long_varint(data, position, end, bits)


@njit(inline="always")
def _hash(data: Any, start: Any, end: Any) -> Any:
    """Words of 8 bytes, the last one overlapping the one before it; a short key byte by byte."""
    h = np.uint64(end - start) * _MIX
    if end - start < 8:
        for position in range(start, end):
            h = (h ^ np.uint64(byte_at(data, position))) * _MIX
    else:
        position = start
        while position + 8 < end:
            h = (h ^ load64(data, position)) * _MIX
            h ^= h >> np.uint64(32)
            position += 8
        h = (h ^ load64(data, end - 8)) * _MIX
    return h ^ (h >> np.uint64(32))


@njit(inline="always")
def _shape(data: Any, start: Any, end: Any) -> Any:
    """Whether a key is a plain ASCII offset or group key to the last byte; all others are for the scalar codec."""
    if end - start < 4:
        return ODD
    version = int16_at(data, start)
    group = int16_at(data, start + 2)
    behind = start + 4 + group
    if group < 0 or behind > end:
        return ODD
    if version == 2:
        for i in range(start + 4, end):
            if data[i] >= 0x80:
                return ODD
        return CLEAN_GROUP if behind == end else ODD
    if version != 1 or behind + 2 > end:
        return ODD
    topic = int16_at(data, behind)
    if topic < 0 or behind + 2 + topic + 4 != end:
        return ODD
    for i in range(start + 4, end - 4):
        if data[i] >= 0x80:
            return ODD
    return CLEAN_OFFSET


@njit(inline="always")
def _slot(h: Any, key: Any) -> Any:
    """A key's number with the upper half of its hash, so that most of the wrong ones are told at a glance."""
    return (h & np.uint64(0xFFFFFFFF00000000)) | np.uint64(key)


@njit(inline="always")
def _intern(
    data: Any, start: Any, end: Any, slots: Any, hashes: Any, starts: Any, arena: Any, shapes: Any, size: Any
) -> Any:
    """The id of the key at `data[start:end]`; the size of the table if it is new (and then it was put in)."""
    h = _hash(data, start, end)
    mask = np.uint64(len(slots) - 1)
    slot = h & mask
    length = end - start
    while True:
        found = slots[slot]
        if found == EMPTY_SLOT:
            break
        if found >> np.uint64(32) == h >> np.uint64(32):
            key = found & np.uint64(0xFFFFFFFF)
            at = starts[key]
            if starts[key + np.uint64(1)] - at == length and same(arena, at, data, start, length):
                return np.int64(key)
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = _slot(h, size)
    hashes[size] = h
    at = starts[size]
    copy(data, start, arena, at, length)
    starts[size + 1] = at + length
    shapes[size] = _shape(data, start, end)
    return size


@njit(_I64(DATA, _LONGS, *_TABLE_TYPES, _I64, _LONGS), cache=CACHE, nogil=True)
def intern_all(
    data: Bytes,
    bounds: Longs,
    slots: Slots,
    hashes: Slots,
    starts: Longs,
    arena: Bytes,
    shapes: NDArray[np.int8],
    size: int,
    ids: Longs,
) -> Any:
    """Intern the keys that stand between `bounds`, one after the other; returns the new size of the table."""
    for i in range(len(bounds) - 1):
        ids[i] = _intern(data, bounds[i], bounds[i + 1], slots, hashes, starts, arena, shapes, size)
        if ids[i] == size:
            size += 1
    return size


@njit(types.void(types.uint64[::1], _I64, types.uint64[::1]), cache=CACHE, nogil=True)
def rehash(hashes: Slots, size: int, slots: Slots) -> None:
    """Put the first `size` keys into an empty table of slots."""
    mask = np.uint64(len(slots) - 1)
    for key in range(size):
        slot = hashes[key] & mask
        while slots[slot] != EMPTY_SLOT:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = _slot(hashes[key], key)


@njit(
    types.UniTuple(_I64, 3)(
        DATA,
        _I64[:, ::1],
        _LONGS,
        _LONGS,
        _LONGS,
        _I64,
        *_TABLE_TYPES,
        _I64,
        _LONGS,
        _LONGS,
        _INTS,
        _LONGS,
        _INTS,
        _INTS,
        _INTS,
    ),
    cache=CACHE,
    nogil=True,
)
def decode_records(
    data: Bytes,
    heads: Longs,
    body_starts: Longs,
    body_ends: Longs,
    first_rows: Longs,
    first_batch: int,
    slots: Slots,
    hashes: Slots,
    starts: Longs,
    arena: Bytes,
    shapes: NDArray[np.int8],
    size: int,
    offsets: Longs,
    timestamps: Longs,
    key_ids: Ints,
    value_starts: Longs,
    value_sizes: Ints,
    batches: Ints,
    record_sizes: Ints,
) -> Any:
    """Parse the records of the batches from `first_batch` on into rows; returns the next batch, the table's size, why.

    It stops at a batch that is malformed, and at one whose keys the table cannot take; that one is to be parsed again.
    A record without a key, and every record of a control batch, has `NO_KEY`; a tombstone has a value of size -1.
    """
    guess = np.uint64(0)
    for b in range(first_batch, len(heads)):
        position, end = body_starts[b], body_ends[b]
        count = heads[b, RECORD_COUNT]
        base_offset, base_timestamp = heads[b, BASE_OFFSET], heads[b, BASE_TIMESTAMP]
        attributes = heads[b, ATTRIBUTES]
        control = attributes & CONTROL != 0
        append_time = attributes & LOG_APPEND_TIME != 0
        row = np.uint64(first_rows[b])
        for n in range(count):
            record_start = position
            length, position = _varint(data, position, end)
            if position < 0 or length < 0 or length > end - position:
                return b, size, DAMAGED
            record_end = position + length
            position += 1
            delta, position = _varint(data, position, end, 64)
            if position < 0:
                return b, size, DAMAGED
            timestamps[row] = heads[b, MAX_TIMESTAMP] if append_time else base_timestamp + delta
            delta, position = _varint(data, position, end)
            if position < 0:
                return b, size, DAMAGED
            offsets[row] = base_offset + delta
            key_size, position = _varint(data, position, end)
            if position < 0 or (key_size >= 0 and key_size > record_end - position):
                return b, size, DAMAGED
            key_start = position
            key_ids[row] = NO_KEY
            if key_size >= 0:
                position += key_size
                if not control:
                    # A group commits its partitions in the same order time and again: try the key that came next.
                    guess += np.uint64(1)
                    if not (
                        guess < np.uint64(size)
                        and starts[guess + np.uint64(1)] - starts[guess] == key_size
                        and same(arena, starts[guess], data, key_start, key_size)
                    ):
                        if size == len(hashes) or starts[size] + key_size > len(arena) or 2 * size >= len(slots):
                            return b, size, TABLE_FULL
                        key = _intern(data, key_start, position, slots, hashes, starts, arena, shapes, size)
                        if key == size:
                            size += 1
                        guess = np.uint64(key)
                    key_ids[row] = np.int32(guess)
            value_size, position = _varint(data, position, end)
            if position < 0 or (value_size >= 0 and value_size > record_end - position):
                return b, size, DAMAGED
            value_starts[row] = position
            value_sizes[row] = value_size if value_size >= 0 else -1
            if value_size >= 0:
                position += value_size
            if control and n == 0:
                if key_size >= 4:
                    heads[b, MARKER] = int16_at(data, key_start + 2)
                if value_size >= 6:
                    heads[b, COORDINATOR_EPOCH] = int32_at(data, value_starts[row] + 2)
            header_count, position = _varint(data, position, end)
            if position < 0 or header_count < 0 or header_count > record_end - position:
                return b, size, DAMAGED
            for _ in range(header_count):
                part, position = _varint(data, position, end)
                if position < 0 or part < 0 or part > record_end - position:
                    return b, size, DAMAGED
                position += part
                part, position = _varint(data, position, end)
                if position < 0 or (part >= 0 and part > record_end - position):
                    return b, size, DAMAGED
                if part >= 0:
                    position += part
            if position != record_end:
                return b, size, DAMAGED
            batches[row] = b
            record_sizes[row] = record_end - record_start
            row += np.uint64(1)
        if position != end:
            return b, size, DAMAGED
    return len(heads), size, COMPLETE


@njit(types.void(DATA, _LONGS, _LONGS, types.uint8[::1], _LONGS), cache=CACHE, nogil=True)
def gather(data: Bytes, from_: Longs, sizes: Longs, out: Bytes, to: Longs) -> None:
    """Copy pieces of `data` to their places in `out`."""
    for i in range(len(from_)):
        copy(data, from_[i], out, to[i], sizes[i])


@njit(
    types.void(
        DATA, _LONGS, _INTS, types.int16[::1], _LONGS, _INTS, _LONGS, _INTS, _LONGS, _LONGS, _LONGS, types.boolean[::1]
    ),
    cache=CACHE,
    nogil=True,
)
def decode_offset_values(
    data: Bytes,
    starts: Longs,
    sizes: Ints,
    versions: NDArray[np.int16],
    offsets: Longs,
    leader_epochs: Ints,
    metadata_starts: Longs,
    metadata_sizes: Ints,
    commit_timestamps: Longs,
    expire_timestamps: Longs,
    topic_ids: Longs,
    plain: NDArray[np.bool_],
) -> None:
    """Read offset commit values. What is not `plain` (unknown, malformed, or with odd tagged fields) is left to others.

    `topic_ids` tells where a topic id begins, and -1 where there is none.
    """
    for i in range(len(starts)):
        at, end = starts[i], starts[i] + sizes[i]
        plain[i] = False
        if sizes[i] < 2:
            continue
        version = int16_at(data, at)
        versions[i] = version
        at += 2
        if version < 0 or version > 4 or end - at < 8:
            continue
        offsets[i] = int64_at(data, at)
        at += 8
        leader_epochs[i] = -1
        if version >= 3:
            if end - at < 4:
                continue
            leader_epochs[i] = int32_at(data, at)
            at += 4
        if version >= 4:
            raw = np.int64(0)
            shift = 0
            whole = False
            while at < end and shift < 35:
                byte = np.int64(data[at])
                at += 1
                raw |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    whole = True
                    break
            size = (raw & 0xFFFFFFFF) - 1
            if not whole:
                continue
        else:
            if end - at < 2:
                continue
            size = int16_at(data, at)
            at += 2
        if size < 0 or size > end - at:
            continue
        metadata_starts[i] = at
        metadata_sizes[i] = size
        at += size
        if end - at < 8:
            continue
        commit_timestamps[i] = int64_at(data, at)
        at += 8
        expire_timestamps[i] = -1
        if version == 1:
            if end - at < 8:
                continue
            expire_timestamps[i] = int64_at(data, at)
        topic_ids[i] = -1
        if version >= 4:
            if end - at < 1 or data[at] > 1:
                continue
            if data[at] == 1:
                # One tagged field: number 0, of 16 bytes.
                if end - at < 3 + _UUID_BYTES or data[at + 1] != 0 or data[at + 2] != _UUID_BYTES:
                    continue
                topic_ids[i] = at + 3
        plain[i] = True
