"""OffsetCommit in compiled code: a request's bytes become a record batch and an answer in one walk.

Written is what `GroupRecords.offset_commits` and the general writer of answers would write; the tests compare them byte
by byte. Whatever is not plain (a partition twice, text that is not ASCII where it is copied, tagged fields, a retention
time, a request that does not add up) is left to the general way, which also says what is wrong.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from kohort.records.batch import HEADER_SIZE
from kohort.records.machine import CACHE, Bytes, byte_at, copy, crc32c, int16_at, int32_at, int64_at, same

UNUSUAL = -1
"""A request for the general way."""

# What a walk finds out, in its table: where texts stand in the request, how much was written, and from FIRST_TOPIC on
# for each topic where its name stands, how long it is and its highest partition.
GROUP, GROUP_SIZE, GENERATION, MEMBER, MEMBER_SIZE, INSTANCE, INSTANCE_SIZE = 0, 1, 2, 3, 4, 5, 6
BATCH_SIZE, ANSWER_SIZE, SHAPE_SIZE, RECORDS, TOPICS, FIRST_TOPIC = 7, 8, 9, 10, 11, 12
MOST_TOPICS = 256
FOUND_SIZE = FIRST_TOPIC + 3 * MOST_TOPICS

_MOST_UNSORTED = 256
_LONGEST_STRING = 0x7FFF
_FLEXIBLE = 8
_RECORD_ROOM = 64
"""More than a record takes besides its texts."""

_CRC_AT, _CRC_START = 17, 21


@njit(inline="always")
def _put16(out: Any, at: Any, value: Any) -> Any:
    out[at] = (value >> 8) & 0xFF
    out[at + 1] = value & 0xFF
    return at + 2


@njit(inline="always")
def _put32(out: Any, at: Any, value: Any) -> Any:
    for byte in range(4):
        out[at + byte] = (value >> (24 - 8 * byte)) & 0xFF
    return at + 4


@njit(inline="always")
def _put64(out: Any, at: Any, value: Any) -> Any:
    for byte in range(8):
        out[at + byte] = (value >> (56 - 8 * byte)) & 0xFF
    return at + 8


@njit(inline="always")
def _put_unsigned(out: Any, at: Any, value: Any) -> Any:
    while value > 0x7F:
        out[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@njit(inline="always")
def _unsigned_size(value: Any) -> Any:
    size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


@njit(inline="always")
def _unsigned(data: Any, at: Any, end: Any) -> Any:
    """An unsigned varint of up to four bytes, and where it ends; -1 if there is none."""
    value = np.int64(0)
    for shift in range(0, 28, 7):
        if at >= end:
            return -1, at
        byte = np.int64(byte_at(data, at))
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return -1, at


@njit(inline="always")
def _length(data: Any, at: Any, end: Any, flexible: Any) -> Any:
    """How long a string is (-1: null) and where it begins; -2 if it does not fit."""
    if flexible:
        size, at = _unsigned(data, at, end)
        if size < 0:
            return -2, at
        size -= 1
    else:
        if at + 2 > end:
            return -2, at
        size = int16_at(data, at)
        at += 2
    if size < -1 or size > _LONGEST_STRING or at + size > end:
        return -2, at
    return size, at


@njit(inline="always")
def _count(data: Any, at: Any, end: Any, flexible: Any) -> Any:
    """How many entries an array has, and where they begin; -1 if it is null or does not add up."""
    if flexible:
        size, at = _unsigned(data, at, end)
        return size - 1, at
    if at + 4 > end:
        return -1, at
    return int32_at(data, at), at + 4


@njit(
    types.int64(
        types.uint8[::1],
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.uint8[::1],
        types.uint8[::1],
        types.uint8[::1],
        types.int64[::1],
    ),
    cache=CACHE,
)
def transcode(
    data: Bytes,
    end: int,
    at: int,
    version: int,
    now_ms: int,
    most_metadata: int,
    batch: Bytes,
    answer: Bytes,
    shape: Bytes,
    found: NDArray[np.int64],
) -> int:
    """Walk over the request in `data[:end]`, whose header ends at `at`, and write the rest."""
    flexible = version >= _FLEXIBLE
    if flexible:
        if at >= end or byte_at(data, at) != 0:
            return UNUSUAL
        at += 1
    group_size, group = _length(data, at, end, flexible)
    if group_size < 0:
        return UNUSUAL
    at = group + group_size
    if at + 4 > end:
        return UNUSUAL
    found[GENERATION] = int32_at(data, at)
    member_size, member = _length(data, at + 4, end, flexible)
    if member_size < 0:
        return UNUSUAL
    at = member + member_size
    instance_size, instance = -1, at
    if version >= 7:
        instance_size, instance = _length(data, at, end, flexible)
        if instance_size < -1:
            return UNUSUAL
        at = instance + max(instance_size, 0)
    if version <= 4:
        if at + 8 > end or int64_at(data, at) != -1:
            return UNUSUAL
        at += 8
    topics, at = _count(data, at, end, flexible)
    if topics < 1 or topics > MOST_TOPICS:
        return UNUSUAL

    for byte in range(4):
        answer[byte] = byte_at(data, 4 + byte)  # the correlation id
    a = 4
    if flexible:
        answer[a] = 0
        a += 1
    if version >= 3:
        a = _put32(answer, a, 0)
    a = _put_unsigned(answer, a, topics + 1) if flexible else _put32(answer, a, topics)

    b, s, records = HEADER_SIZE, 0, 0
    for topic in range(topics):
        name_size, name = _length(data, at, end, flexible)
        if name_size < 0:
            return UNUSUAL
        for other in range(topic):
            entry = FIRST_TOPIC + 3 * other
            if found[entry + 1] == name_size and same(data, found[entry], data, name, name_size):
                return UNUSUAL
        partitions, at = _count(data, name + name_size, end, flexible)
        if partitions < 1 or at + partitions > end:
            return UNUSUAL
        if a + name_size + 16 + 7 * partitions > len(answer) or s + name_size + 6 + 4 * partitions > len(shape):
            return UNUSUAL
        a = _put_unsigned(answer, a, name_size + 1) if flexible else _put16(answer, a, name_size)
        copy(data, name, answer, a, name_size)
        a += name_size
        a = _put_unsigned(answer, a, partitions + 1) if flexible else _put32(answer, a, partitions)
        s = _put16(shape, s, name_size)
        copy(data, name, shape, s, name_size)
        s = _put32(shape, s + name_size, partitions)
        first_in_shape = s
        highest, is_sorted = -1, True
        for number in range(partitions):
            fixed = 16 if version >= 6 else 12
            if at + fixed > end:
                return UNUSUAL
            partition = int32_at(data, at)
            offset = int64_at(data, at + 4)
            leader_epoch = int32_at(data, at + 12) if version >= 6 else -1
            metadata_size, metadata = _length(data, at + fixed, end, flexible)
            if partition < 0 or metadata_size < -1:
                return UNUSUAL
            metadata_size = max(metadata_size, 0)
            if metadata_size > most_metadata:
                return UNUSUAL
            for i in range(metadata, metadata + metadata_size):
                if byte_at(data, i) >= 0x80:
                    return UNUSUAL
            at = metadata + metadata_size
            if flexible:
                if at >= end or byte_at(data, at) != 0:
                    return UNUSUAL
                at += 1
            if partition <= highest:
                is_sorted = False
            highest = max(highest, partition)
            if not is_sorted:
                if number > _MOST_UNSORTED:
                    return UNUSUAL
                for other in range(number):
                    if int32_at(shape, first_in_shape + 4 * other) == partition:
                        return UNUSUAL
            s = _put32(shape, s, partition)
            a = _put32(answer, a, partition)
            a = _put16(answer, a, 0)
            if flexible:
                answer[a] = 0
                a += 1

            if b + group_size + name_size + metadata_size + _RECORD_ROOM > len(batch):
                return UNUSUAL
            key_size = 10 + group_size + name_size
            value_size = 24 + metadata_size
            size = (
                3
                + _unsigned_size(2 * records)
                + _unsigned_size(2 * key_size)
                + key_size
                + _unsigned_size(2 * value_size)
                + value_size
            )
            b = _put_unsigned(batch, b, 2 * size)
            batch[b] = 0  # attributes
            batch[b + 1] = 0  # its time is the batch's
            b = _put_unsigned(batch, b + 2, 2 * records)
            b = _put_unsigned(batch, b, 2 * key_size)
            b = _put16(batch, b, 1)
            b = _put16(batch, b, group_size)
            copy(data, group, batch, b, group_size)
            b = _put16(batch, b + group_size, name_size)
            copy(data, name, batch, b, name_size)
            b = _put32(batch, b + name_size, partition)
            b = _put_unsigned(batch, b, 2 * value_size)
            b = _put16(batch, b, 3)
            b = _put64(batch, b, offset)
            b = _put32(batch, b, leader_epoch)
            b = _put16(batch, b, metadata_size)
            copy(data, metadata, batch, b, metadata_size)
            b = _put64(batch, b + metadata_size, now_ms)
            batch[b] = 0  # no headers
            b += 1
            records += 1
        if flexible:
            if at >= end or byte_at(data, at) != 0:
                return UNUSUAL
            at += 1
            answer[a] = 0
            a += 1
        entry = FIRST_TOPIC + 3 * topic
        found[entry], found[entry + 1], found[entry + 2] = name, name_size, highest
    if flexible:
        if at >= end or byte_at(data, at) != 0:
            return UNUSUAL
        at += 1
        answer[a] = 0
        a += 1
    if at != end:
        return UNUSUAL

    _put64(batch, 0, 0)
    _put32(batch, 8, b - 12)
    _put32(batch, 12, -1)
    batch[16] = 2
    _put16(batch, 21, 0)
    _put32(batch, 23, records - 1)
    _put64(batch, 27, now_ms)
    _put64(batch, 35, now_ms)
    _put64(batch, 43, -1)
    _put16(batch, 51, -1)
    _put32(batch, 53, 0)
    _put32(batch, 57, records)
    _put32(batch, _CRC_AT, np.int64(crc32c(batch, _CRC_START, b)))
    found[GROUP], found[GROUP_SIZE] = group, group_size
    found[MEMBER], found[MEMBER_SIZE] = member, member_size
    found[INSTANCE], found[INSTANCE_SIZE] = instance, instance_size
    found[BATCH_SIZE], found[ANSWER_SIZE], found[SHAPE_SIZE] = b, a, s
    found[RECORDS], found[TOPICS] = records, topics
    return records
