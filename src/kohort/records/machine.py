"""What a processor does in a step or a few: reads and writes at any alignment, checksums, comparisons of bytes.

The kernels are built from these. They are compiled into them, so whoever changes something here must touch the modules
that import it: the cache of compiled code looks at the time of a kernel's own file only.
"""

from typing import Any

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def _can_cache() -> bool:
    """Whether there is a place to keep compiled code; if not, it is made again at every start."""
    try:
        njit(cache=True)(lambda: None)
    except RuntimeError:
        return False
    return True


CACHE = _can_cache()

DATA = types.Array(types.uint8, 1, "C", readonly=True)
"""Bytes to be read."""


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


store64: Any = _store64_intrinsic
byte_at = _loader(8, big_endian=False)
load64 = _loader(64, big_endian=False)
_big16 = _loader(16, big_endian=True)
_big32 = _loader(32, big_endian=True)
_big64 = _loader(64, big_endian=True)


def _crc_instruction() -> tuple[str, bool] | None:
    """The processor's own CRC-32C step over 8 bytes, if it has one and is what code is made for."""
    if vars(config)["CPU_NAME"] is not None:
        return None
    features = llvm.get_host_cpu_features()
    if features.get("sse4.2"):
        return "llvm.x86.sse42.crc32.64.64", True
    if features.get("crc"):
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


@njit(types.uint32(DATA, types.int64, types.int64), cache=CACHE, nogil=True)
def crc32c(data: Bytes, start: int, end: int) -> Any:
    """CRC-32C of `data[start:end]`."""
    crc = np.uint64(0xFFFFFFFF)
    position = start
    while position + 3 * _LANE <= end:
        second, third = np.uint64(0), np.uint64(0)
        for at in range(position, position + _LANE, 8):
            crc = _crc_step(crc, load64(data, at))
            second = _crc_step(second, load64(data, at + _LANE))
            third = _crc_step(third, load64(data, at + 2 * _LANE))
        crc = _shifted(_SHIFT_TWO, crc) ^ _shifted(_SHIFT_ONE, second) ^ third
        position += 3 * _LANE
    while position + 8 <= end:
        crc = _crc_step(crc, load64(data, position))
        position += 8
    small = np.uint32(crc)
    while position < end:
        small = (small >> np.uint32(8)) ^ _TABLE[0, (small ^ byte_at(data, position)) & np.uint32(0xFF)]
        position += 1
    return small ^ np.uint32(0xFFFFFFFF)


@njit(inline="always")
def crc32(data: Any, start: Any, end: Any) -> Any:
    """The checksum of formats 0 and 1."""
    crc = np.uint32(0xFFFFFFFF)
    for position in range(start, end):
        crc = (crc >> np.uint32(8)) ^ _LEGACY_TABLE[0, (crc ^ data[position]) & np.uint32(0xFF)]
    return crc ^ np.uint32(0xFFFFFFFF)


@njit(inline="always")
def int64_at(data: Any, at: Any) -> Any:
    return np.int64(_big64(data, at))


@njit(inline="always")
def int32_at(data: Any, at: Any) -> Any:
    return np.int64(np.int32(_big32(data, at)))


@njit(inline="always")
def int16_at(data: Any, at: Any) -> Any:
    return np.int64(np.int16(_big16(data, at)))


@njit(inline="always")
def same(a: Any, a_start: Any, b: Any, b_start: Any, length: Any) -> Any:
    if length < 8:
        for i in range(length):  # noqa: SIM110  # numba compiles no generator expressions
            if byte_at(a, a_start + i) != byte_at(b, b_start + i):
                return False
        return True
    i = 0
    while i + 8 < length:
        if load64(a, a_start + i) != load64(b, b_start + i):
            return False
        i += 8
    return load64(a, a_start + length - 8) == load64(b, b_start + length - 8)


@njit(inline="always")
def copy(data: Any, source: Any, out: Any, target: Any, length: Any) -> Any:
    if length < 8:
        for i in range(length):
            out[target + i] = byte_at(data, source + i)
        return
    i = 0
    while i + 8 < length:
        store64(out, target + i, load64(data, source + i))
        i += 8
    store64(out, target + length - 8, load64(data, source + length - 8))
