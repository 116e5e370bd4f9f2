"""The compiled loops behind `columns.py`: batches found and checked, records parsed, keys interned, values read.

They work on arrays of bytes and numbers only and raise nothing: where something does not add up they say so, and the
scalar codec, which is the definition, is asked for the reason. Compiled code is kept on disk, so that only the first
run on a machine waits for the compiler.
"""

import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kohort.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAX_BATCH_BYTES

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Slots = NDArray[np.uint64]

_I64 = types.int64
_DATA = types.Array(types.uint8, 1, "C", readonly=True)
_LONGS = types.int64[::1]
_INTS = types.int32[::1]
_TABLE_TYPES = (types.uint64[::1], types.uint64[::1], _LONGS, types.uint8[::1], types.int8[::1])
"""A key table's slots, hashes, starts, arena and shapes."""

# Columns of the table of batches.
POSITION, SIZE, BASE_OFFSET, LEADER_EPOCH, MAGIC, ATTRIBUTES, LAST_OFFSET_DELTA = 0, 1, 2, 3, 4, 5, 6
BASE_TIMESTAMP, MAX_TIMESTAMP, PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE, RECORD_COUNT = 7, 8, 9, 10, 11, 12
MARKER, COORDINATOR_EPOCH = 13, 14
HEAD_WIDTH = 15

# What a scan of batches ended with.
COMPLETE, CUT_OFF, DAMAGED = 0, 1, 2

NO_KEY = -1
EMPTY_SLOT = np.uint64(0xFFFFFFFFFFFFFFFF)
NO_MARKER = -1

# Shape of an interned key, as far as the kernel can tell.
ODD, CLEAN_OFFSET, CLEAN_GROUP = 0, 1, 2

_CRC_START = 21
_LEGACY_LEAST = 14
_MIX = np.uint64(0x9E3779B97F4A7C15)


def _loader(bits: int, *, big_endian: bool) -> Any:
    """A read of so many bits at any alignment. It is not checked: the caller knows that the bytes are there."""

    @intrinsic
    def load(typingctx: Any, data: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            return builder.bswap(value) if big_endian else value

        return getattr(types, f"uint{bits}")(data, types.int64), codegen

    return load


@intrinsic
def _store64_intrinsic(typingctx: Any, out: Any, index: Any, value: Any) -> Any:
    """Write eight bytes at any alignment, unchecked as the reads are."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(args[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), codegen


_store64: Any = _store64_intrinsic
_byte = _loader(8, big_endian=False)
_load64 = _loader(64, big_endian=False)
_big16 = _loader(16, big_endian=True)
_big32 = _loader(32, big_endian=True)
_big64 = _loader(64, big_endian=True)


def _crc_instruction() -> tuple[str, bool] | None:
    """The processor's own CRC-32C step over 8 bytes, where every machine of the kind has one."""
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return "llvm.x86.sse42.crc32.64.64", True
    if machine in ("aarch64", "arm64"):
        return "llvm.aarch64.crc32cx", False
    return None


def _crc_table(polynomial: int) -> NDArray[np.uint32]:
    """The eight tables of a sliced CRC; the first serves byte by byte."""
    table = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        table[0, byte] = crc
    for slice_ in range(1, 8):
        for byte in range(256):
            before = int(table[slice_ - 1, byte])
            table[slice_, byte] = before >> 8 ^ int(table[0, before & 0xFF])
    return table


_TABLE = _crc_table(0x82F63B78)
_LEGACY_TABLE = _crc_table(0xEDB88320)
_INSTRUCTION = _crc_instruction()

if _INSTRUCTION is not None:
    _NAME, _WIDE = _INSTRUCTION

    @intrinsic
    def _crc_step_intrinsic(typingctx: Any, crc: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            accumulator = ir.IntType(64 if _WIDE else 32)
            function = builder.module.declare_intrinsic(
                _NAME, (), ir.FunctionType(accumulator, [accumulator, ir.IntType(64)])
            )
            first = args[0] if _WIDE else builder.trunc(args[0], accumulator)
            result = builder.call(function, [first, args[1]])
            return result if _WIDE else builder.zext(result, ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), codegen

    _crc_step: Any = _crc_step_intrinsic
else:

    @njit(inline="always")
    def _crc_step(crc: Any, word: Any) -> Any:
        x = crc ^ word
        return np.uint64(
            _TABLE[7, x & 0xFF]
            ^ _TABLE[6, x >> 8 & 0xFF]
            ^ _TABLE[5, x >> 16 & 0xFF]
            ^ _TABLE[4, x >> 24 & 0xFF]
            ^ _TABLE[3, x >> 32 & 0xFF]
            ^ _TABLE[2, x >> 40 & 0xFF]
            ^ _TABLE[1, x >> 48 & 0xFF]
            ^ _TABLE[0, x >> 56 & 0xFF]
        )


_LANE = 128
"""Three checksum steps take the time of one if they do not wait for each other: so many bytes in each of three."""


def _shift_table(zeros: int) -> NDArray[np.uint32]:
    """What a checksum becomes behind so many zero bytes, by each of its four bytes."""
    basis = []
    for bit in range(32):
        crc = 1 << bit
        for _ in range(zeros):
            crc = crc >> 8 ^ int(_TABLE[0, crc & 0xFF])
        basis.append(crc)
    table = np.zeros((4, 256), np.uint32)
    for place in range(4):
        for byte in range(256):
            for bit in range(8):
                if byte >> bit & 1:
                    table[place, byte] ^= np.uint32(basis[8 * place + bit])
    return table


_SHIFT_ONE, _SHIFT_TWO = _shift_table(_LANE), _shift_table(2 * _LANE)


@njit(inline="always")
def _shifted(table: Any, crc: Any) -> Any:
    return np.uint64(
        table[0, crc & np.uint64(0xFF)]
        ^ table[1, crc >> np.uint64(8) & np.uint64(0xFF)]
        ^ table[2, crc >> np.uint64(16) & np.uint64(0xFF)]
        ^ table[3, crc >> np.uint64(24) & np.uint64(0xFF)]
    )


@njit(types.uint32(_DATA, _I64, _I64), cache=True, nogil=True)
def crc32c(data: Bytes, start: int, end: int) -> Any:
    """CRC-32C of `data[start:end]`."""
    crc = np.uint64(0xFFFFFFFF)
    position = start
    while position + 3 * _LANE <= end:
        second, third = np.uint64(0), np.uint64(0)
        for at in range(position, position + _LANE, 8):
            crc = _crc_step(crc, _load64(data, at))
            second = _crc_step(second, _load64(data, at + _LANE))
            third = _crc_step(third, _load64(data, at + 2 * _LANE))
        crc = _shifted(_SHIFT_TWO, crc) ^ _shifted(_SHIFT_ONE, second) ^ third
        position += 3 * _LANE
    while position + 8 <= end:
        crc = _crc_step(crc, _load64(data, position))
        position += 8
    small = np.uint32(crc)
    while position < end:
        small = (small >> np.uint32(8)) ^ _TABLE[0, (small ^ _byte(data, position)) & np.uint32(0xFF)]
        position += 1
    return small ^ np.uint32(0xFFFFFFFF)


@njit(inline="always")
def _crc32(data: Any, start: Any, end: Any) -> Any:
    """The checksum of formats 0 and 1."""
    crc = np.uint32(0xFFFFFFFF)
    for position in range(start, end):
        crc = (crc >> np.uint32(8)) ^ _LEGACY_TABLE[0, (crc ^ data[position]) & np.uint32(0xFF)]
    return crc ^ np.uint32(0xFFFFFFFF)


@njit(inline="always")
def _int64(data: Any, at: Any) -> Any:
    return np.int64(_big64(data, at))


@njit(inline="always")
def _int32(data: Any, at: Any) -> Any:
    return np.int64(np.int32(_big32(data, at)))


@njit(inline="always")
def _int16(data: Any, at: Any) -> Any:
    return np.int64(np.int16(_big16(data, at)))


@njit(types.UniTuple(_I64, 3)(_DATA, _I64, _I64, _I64[:, ::1]), cache=True, nogil=True)
def scan_batches(data: Bytes, start: int, end: int, heads: Longs) -> Any:
    """Fill `heads` with the sound batches from `start` on; returns how many, where the scan stopped, and why.

    Batches of formats 0 and 1 are checked too, but only their position, size and magic are filled in.
    """
    position, count = start, 0
    while position < end and count < len(heads):
        if end - position < LOG_OVERHEAD:
            return count, position, CUT_OFF
        length = _int32(data, position + 8)
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
        head[BASE_OFFSET] = _int64(data, position)
        head[MARKER] = NO_MARKER
        head[COORDINATOR_EPOCH] = -1
        if magic == 2:
            if size < HEADER_SIZE:
                return count, position, DAMAGED
            crc = np.uint32(_int32(data, position + 17))
            if crc32c(data, position + _CRC_START, position + size) != crc:
                return count, position, DAMAGED
            head[LEADER_EPOCH] = _int32(data, position + 12)
            head[ATTRIBUTES] = _int16(data, position + 21)
            head[LAST_OFFSET_DELTA] = _int32(data, position + 23)
            head[BASE_TIMESTAMP] = _int64(data, position + 27)
            head[MAX_TIMESTAMP] = _int64(data, position + 35)
            head[PRODUCER_ID] = _int64(data, position + 43)
            head[PRODUCER_EPOCH] = _int16(data, position + 51)
            head[BASE_SEQUENCE] = _int32(data, position + 53)
            head[RECORD_COUNT] = _int32(data, position + 57)
            if head[RECORD_COUNT] < 0:
                return count, position, DAMAGED
        else:
            if magic > 2 or (magic == 1 and length < _LEGACY_LEAST + 8):
                return count, position, DAMAGED
            crc = np.uint32(_int32(data, position + 12))
            if _crc32(data, position + 16, position + size) != crc:
                return count, position, DAMAGED
        position += size
        count += 1
    return count, position, COMPLETE


@njit(types.UniTuple(_I64, 2)(_DATA, _I64, _I64, _I64), cache=True, nogil=True)
def _long_varint(data: Bytes, position: int, end: int, bits: int) -> Any:
    """A zigzag varint of up to so many bits, and the position behind it, which is -1 where there is none."""
    raw = np.uint64(0)
    shift = 0
    while position < end and shift < bits:
        byte = np.uint64(_byte(data, position))
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
        first = np.int64(_byte(data, position))
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), position + 1
        second = np.int64(_byte(data, position + 1))
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
            h = (h ^ np.uint64(_byte(data, position))) * _MIX
    else:
        position = start
        while position + 8 < end:
            h = (h ^ _load64(data, position)) * _MIX
            h ^= h >> np.uint64(32)
            position += 8
        h = (h ^ _load64(data, end - 8)) * _MIX
    return h ^ (h >> np.uint64(32))


@njit(inline="always")
def _same(a: Any, a_start: Any, b: Any, b_start: Any, length: Any) -> Any:
    if length < 8:
        for i in range(length):  # noqa: SIM110  # numba compiles no generator expressions
            if _byte(a, a_start + i) != _byte(b, b_start + i):
                return False
        return True
    i = 0
    while i + 8 < length:
        if _load64(a, a_start + i) != _load64(b, b_start + i):
            return False
        i += 8
    return _load64(a, a_start + length - 8) == _load64(b, b_start + length - 8)


@njit(inline="always")
def _copy(data: Any, source: Any, out: Any, target: Any, length: Any) -> Any:
    if length < 8:
        for i in range(length):
            out[target + i] = _byte(data, source + i)
        return
    i = 0
    while i + 8 < length:
        _store64(out, target + i, _load64(data, source + i))
        i += 8
    _store64(out, target + length - 8, _load64(data, source + length - 8))


@njit(inline="always")
def _shape(data: Any, start: Any, end: Any) -> Any:
    """Whether a key is a plain ASCII offset or group key to the last byte; all others are for the scalar codec."""
    if end - start < 4:
        return ODD
    version = _int16(data, start)
    group = _int16(data, start + 2)
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
    topic = _int16(data, behind)
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
            if starts[key + np.uint64(1)] - at == length and _same(arena, at, data, start, length):
                return np.int64(key)
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = _slot(h, size)
    hashes[size] = h
    at = starts[size]
    _copy(data, start, arena, at, length)
    starts[size + 1] = at + length
    shapes[size] = _shape(data, start, end)
    return size


@njit(_I64(_DATA, _LONGS, *_TABLE_TYPES, _I64, _LONGS), cache=True, nogil=True)
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


@njit(types.void(types.uint64[::1], _I64, types.uint64[::1]), cache=True, nogil=True)
def rehash(hashes: Slots, size: int, slots: Slots) -> None:
    """Put the first `size` keys into an empty table of slots."""
    mask = np.uint64(len(slots) - 1)
    for key in range(size):
        slot = hashes[key] & mask
        while slots[slot] != EMPTY_SLOT:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = _slot(hashes[key], key)


@njit(
    types.UniTuple(_I64, 2)(
        _DATA,
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
    ),
    cache=True,
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
) -> Any:
    """Parse the records of the batches from `first_batch` on into rows; returns the next batch and the table's size.

    It stops before a batch for which the key table may be too small, and at one that is malformed. A record without a
    key, and every record of a control batch, has `NO_KEY`; a tombstone has a value of size -1.
    """
    guess = np.uint64(0)
    for b in range(first_batch, len(heads)):
        position, end = body_starts[b], body_ends[b]
        count = heads[b, RECORD_COUNT]
        if (
            size + count > len(hashes)
            or starts[size] + (end - position) > len(arena)
            or 2 * (size + count) > len(slots)
        ):
            return b, size
        base_offset, base_timestamp = heads[b, BASE_OFFSET], heads[b, BASE_TIMESTAMP]
        attributes = heads[b, ATTRIBUTES]
        control = attributes & 0x20 != 0
        append_time = attributes & 0x08 != 0
        row = np.uint64(first_rows[b])
        for n in range(count):
            length, position = _varint(data, position, end)
            if position < 0 or length < 0 or length > end - position:
                return b, size
            record_end = position + length
            position += 1
            delta, position = _varint(data, position, end, 64)
            if position < 0:
                return b, size
            timestamps[row] = heads[b, MAX_TIMESTAMP] if append_time else base_timestamp + delta
            delta, position = _varint(data, position, end)
            if position < 0:
                return b, size
            offsets[row] = base_offset + delta
            key_size, position = _varint(data, position, end)
            if position < 0 or (key_size >= 0 and key_size > record_end - position):
                return b, size
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
                        and _same(arena, starts[guess], data, key_start, key_size)
                    ):
                        key = _intern(data, key_start, position, slots, hashes, starts, arena, shapes, size)
                        if key == size:
                            size += 1
                        guess = np.uint64(key)
                    key_ids[row] = np.int32(guess)
            value_size, position = _varint(data, position, end)
            if position < 0 or (value_size >= 0 and value_size > record_end - position):
                return b, size
            value_starts[row] = position
            value_sizes[row] = value_size if value_size >= 0 else -1
            if value_size >= 0:
                position += value_size
            if control and n == 0:
                if key_size >= 4:
                    heads[b, MARKER] = _int16(data, key_start + 2)
                if value_size >= 6:
                    heads[b, COORDINATOR_EPOCH] = _int32(data, value_starts[row] + 2)
            header_count, position = _varint(data, position, end)
            if position < 0 or header_count < 0 or header_count > record_end - position:
                return b, size
            for _ in range(header_count):
                part, position = _varint(data, position, end)
                if position < 0 or part < 0 or part > record_end - position:
                    return b, size
                position += part
                part, position = _varint(data, position, end)
                if position < 0 or (part >= 0 and part > record_end - position):
                    return b, size
                if part >= 0:
                    position += part
            if position != record_end:
                return b, size
            batches[row] = b
            row += np.uint64(1)
        if position != end:
            return b, size
    return len(heads), size


@njit(types.UniTuple(_I64, 2)(_LONGS, _I64, _I64, _LONGS), cache=True, nogil=True)
def index_points(sizes: Longs, since: int, interval: int, points: Longs) -> Any:
    """The batches that a sparse index names, one behind each `interval` bytes; how many, and what is left."""
    count = 0
    for batch in range(len(sizes)):
        if since > interval:
            points[count] = batch
            count += 1
            since = 0
        since += sizes[batch]
    return count, since


# What `fold_rows` leaves behind for a key that it met, where it is not the row of the value that stands.
UNTOUCHED, REMOVED = -1, -2

FORGOTTEN = -2
"""Instead of the place where a key was mentioned: it was, but coordinators up to 3.9 have forgotten it since."""


@njit(
    types.UniTuple(_I64, 3)(
        _I64[:, ::1],
        _LONGS,
        _INTS,
        _INTS,
        _INTS,
        _INTS,
        types.int8[::1],
        types.boolean,
        _LONGS,
        _LONGS,
        _LONGS,
        _LONGS,
        _INTS,
        _LONGS,
    ),
    cache=True,
    nogil=True,
)
def fold_rows(
    heads: Longs,
    offsets: Longs,
    key_ids: Ints,
    value_sizes: Ints,
    batches: Ints,
    canonical: Ints,
    kinds: NDArray[np.int8],
    transactional_tombstones_remove: bool,
    best: Longs,
    removed: Longs,
    mentioned: Longs,
    last_rows: Longs,
    touched: Ints,
    transactional_rows: Longs,
) -> Any:
    """Plain puts and tombstones, in the order of the log. What belongs to a transaction is listed for others.

    Returns how many keys were touched, how many records had no readable key, and how many belong to a transaction.
    """
    keys = unreadable = transactional = 0
    for row in range(len(offsets)):
        attributes = heads[batches[row], ATTRIBUTES]
        if attributes & 0x20:
            transactional_rows[transactional] = row
            transactional += 1
            continue
        if key_ids[row] == NO_KEY:
            unreadable += 1
            continue
        key = canonical[key_ids[row]]
        kind = kinds[key]
        if kind < 0:
            unreadable += 1
            continue
        has_value = value_sizes[row] >= 0
        if has_value:
            mentioned[key] = offsets[row]
        elif heads[batches[row], BASE_SEQUENCE] == -1:  # 4.x gives every batch a sequence
            mentioned[key] = FORGOTTEN
        if attributes & 0x10 and kind == 1:
            transactional_rows[transactional] = row
            transactional += 1
            if has_value or not transactional_tombstones_remove:
                continue
        if last_rows[key] == UNTOUCHED:
            touched[keys] = key
            keys += 1
        if has_value:
            best[key] = offsets[row]
            last_rows[key] = row
        else:
            removed[key] = offsets[row]
            best[key] = -1
            last_rows[key] = REMOVED
    return keys, unreadable, transactional


@njit(types.void(_DATA, _LONGS, _LONGS, types.uint8[::1], _LONGS), cache=True, nogil=True)
def gather(data: Bytes, from_: Longs, sizes: Longs, out: Bytes, to: Longs) -> None:
    """Copy pieces of `data` to their places in `out`."""
    for i in range(len(from_)):
        _copy(data, from_[i], out, to[i], sizes[i])


@njit(
    types.void(
        _DATA, _LONGS, _INTS, types.int16[::1], _LONGS, _INTS, _LONGS, _INTS, _LONGS, _LONGS, types.boolean[::1]
    ),
    cache=True,
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
    plain: NDArray[np.bool_],
) -> None:
    """Read offset commit values. What is not `plain` (unknown, malformed, or with tagged fields) is left to others."""
    for i in range(len(starts)):
        at, end = starts[i], starts[i] + sizes[i]
        plain[i] = False
        if sizes[i] < 2:
            continue
        version = _int16(data, at)
        versions[i] = version
        at += 2
        if version < 0 or version > 4 or end - at < 8:
            continue
        offsets[i] = _int64(data, at)
        at += 8
        leader_epochs[i] = -1
        if version >= 3:
            if end - at < 4:
                continue
            leader_epochs[i] = _int32(data, at)
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
            size = _int16(data, at)
            at += 2
        if size < 0 or size > end - at:
            continue
        metadata_starts[i] = at
        metadata_sizes[i] = size
        at += size
        if end - at < 8:
            continue
        commit_timestamps[i] = _int64(data, at)
        at += 8
        expire_timestamps[i] = -1
        if version == 1:
            if end - at < 8:
                continue
            expire_timestamps[i] = _int64(data, at)
        if version >= 4 and (end - at < 1 or data[at] != 0):
            continue
        plain[i] = True
