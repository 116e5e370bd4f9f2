"""Record batches: format 2 written and read, formats 0 and 1 read. This scalar codec is the definition.

A segment is a run of batches. `read_header` looks at one batch without opening it, `read_batch` opens it and
`read_batches` walks over a run of them. Everything that does not add up is `CorruptLog` with the byte position; lengths
and counts are checked against the bytes that are there before memory is taken for them.

Layout of format 2, big-endian, 61 bytes before the records:

    0 base offset i64 · 8 length of what follows i32 · 12 partition leader epoch i32 · 16 magic i8 · 17 CRC-32C u32 of
    all after it · 21 attributes i16 · 23 last offset delta i32 · 27 base timestamp i64 · 35 max timestamp i64 ·
    43 producer id i64 · 51 producer epoch i16 · 53 base sequence i32 · 57 record count i32

The base offset and the leader epoch stand outside of the CRC, so that a log can stamp them on a finished batch.
"""

import struct
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from crc32c import crc32c

from kohort.errors import CorruptLog
from kohort.records.compression import Codec, compress_readably, decompress
from kohort.records.primitives import text, utf8, wrap64
from kohort.records.varints import put_varbytes, put_varlong, varbytes, varint, varlong

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

MAX_BATCH_BYTES = 104_857_600
"""No request brings more (`socket.request.max.bytes`), so no batch is longer."""

HEADER_SIZE = 61
SMALLEST_RECORD = 7
"""Length, attributes, two deltas, no key, no value, no headers: a byte each."""

LOG_OVERHEAD = 12
"""Base offset and length, the same in every format."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PLACE = struct.Struct(">qii")
"""Base offset, length of what follows on it, epoch of the leader."""
_CRC_START = 21
_LEGACY_OVERHEAD = {0: 14, 1: 22}

_MAX_OFFSET_DELTA = (1 << 31) - 1

# Bits of a batch's attributes.
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40


class Header(NamedTuple):
    """A header of a record (not of a batch)."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record, with its absolute offset and time."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What is known of a batch without opening it.

    Formats 0 and 1 have fewer fields, and `base_offset` is there the offset of the batch's *last* record.
    """

    position: int
    size: int
    base_offset: int
    magic: int
    crc: int
    attributes: int
    max_timestamp: int
    record_count: int
    last_offset_delta: int = 0
    base_timestamp: int = NO_TIMESTAMP
    partition_leader_epoch: int = NO_LEADER_EPOCH
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE

    @property
    def end(self) -> int:
        """The byte position behind the batch."""
        return self.position + self.size

    @property
    def last_offset(self) -> int:
        return wrap64(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        return wrap64(self.last_offset + 1)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """When the tombstones in this batch may go (KIP-534); set by the cleaner."""
        return self.base_timestamp if self.magic >= 2 and self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch and the records in it."""

    header: BatchHeader
    records: tuple[Record, ...]

    @classmethod
    def build(
        cls,
        records: Sequence[Record],
        *,
        codec: Codec = Codec.NONE,
        transactional: bool = False,
        control: bool = False,
        log_append_time: bool = False,
        delete_horizon: int | None = None,
        base_offset: int | None = None,
        last_offset_delta: int | None = None,
        max_timestamp: int | None = None,
        partition_leader_epoch: int = NO_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
    ) -> "RecordBatch":
        """A batch of format 2 around these records; what is not given follows from them as Kafka derives it."""
        base = base_offset if base_offset is not None else records[0].offset if records else 0
        last = records[-1].offset - base if records else 0
        times = [record.timestamp for record in records]
        attributes = (
            codec
            | LOG_APPEND_TIME * log_append_time
            | TRANSACTIONAL * transactional
            | CONTROL * control
            | DELETE_HORIZON * (delete_horizon is not None)
        )
        header = BatchHeader(
            position=0,
            size=0,
            base_offset=base,
            magic=2,
            crc=0,
            attributes=attributes,
            max_timestamp=max_timestamp if max_timestamp is not None else max(times, default=NO_TIMESTAMP),
            record_count=len(records),
            last_offset_delta=last_offset_delta if last_offset_delta is not None else last,
            base_timestamp=delete_horizon if delete_horizon is not None else times[0] if times else NO_TIMESTAMP,
            partition_leader_epoch=partition_leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        return cls(header, tuple(records))

    def encode(self) -> bytes:
        """The bytes of this batch, in format 2, in a codec with which it can be read again."""
        h = self.header
        codec, body = compress_readably(Codec(h.codec), _encode_records(h, self.records))
        packed = _HEADER.pack(
            h.base_offset,
            HEADER_SIZE - LOG_OVERHEAD + len(body),
            h.partition_leader_epoch,
            2,
            0,
            h.attributes & ~CODEC_MASK | codec,
            h.last_offset_delta,
            h.base_timestamp,
            h.max_timestamp,
            h.producer_id,
            h.producer_epoch,
            h.base_sequence,
            len(self.records),
        )
        crc = crc32c(body, crc32c(packed[_CRC_START:]))
        return packed[:17] + crc.to_bytes(4, "big") + packed[_CRC_START:] + body


def increment_sequence(sequence: int, by: int) -> int:
    """Sequence numbers wrap from 2^31 - 1 to 0."""
    return (sequence + by) & 0x7FFF_FFFF


def stamp(batch: bytearray, *, base_offset: int, partition_leader_epoch: int) -> None:
    """Give a finished batch of format 2 its place in a log, in place."""
    _PLACE.pack_into(batch, 0, base_offset, len(batch) - LOG_OVERHEAD, partition_leader_epoch)


def stamp_append_time(batch: bytearray, timestamp: int) -> None:
    """Turn a finished batch of format 2 into one that bears the time of its append, in place."""
    attributes = int.from_bytes(batch[21:23], "big") | LOG_APPEND_TIME
    struct.pack_into(">h", batch, 21, attributes)
    struct.pack_into(">q", batch, 35, timestamp)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[_CRC_START:])))


def reissued(header: BatchHeader, data: bytes | memoryview, *, producer_id: int, base_sequence: int) -> bytes:
    """The batch of format 2 that stands in `data`, its records as they are, as another producer would send it: the
    first of them is number 0, whatever comes before it in the log."""
    body = bytes(data[header.position + HEADER_SIZE : header.end])
    packed = _HEADER.pack(
        0,
        HEADER_SIZE - LOG_OVERHEAD + len(body),
        NO_LEADER_EPOCH,
        2,
        0,
        header.codec,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        producer_id,
        0,
        base_sequence,
        header.record_count,
    )
    crc = crc32c(body, crc32c(packed[_CRC_START:]))
    return packed[:17] + crc.to_bytes(4, "big") + packed[_CRC_START:] + body


def read_header(data: bytes | memoryview, position: int = 0, *, verify: bool = True) -> BatchHeader:
    """The header of the batch at `position`. With `verify`, its checksum is taken too."""
    left = len(data) - position
    if left < LOG_OVERHEAD:
        raise CorruptLog(f"the last {left} bytes are too few for a batch", position=position)
    length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
    size = LOG_OVERHEAD + length
    if length < _LEGACY_OVERHEAD[0] or size > MAX_BATCH_BYTES:
        raise CorruptLog(f"impossible batch length {length}", position=position)
    if size > left:
        raise CorruptLog(f"a batch of {size} bytes is cut off after {left}", position=position)
    magic = int.from_bytes(data[position + 16 : position + 17], "big", signed=True)
    if magic == 2:
        return _read_header_v2(data, position, size, verify)
    if magic in (0, 1):
        return _read_header_legacy(data, position, size, magic, verify)
    raise CorruptLog(f"unknown batch format {magic}", position=position)


def _read_header_v2(data: bytes | memoryview, position: int, size: int, verify: bool) -> BatchHeader:
    if size < HEADER_SIZE:
        raise CorruptLog(f"a batch of {size} bytes is shorter than its header", position=position)
    base, _, epoch, magic, crc, attributes, delta, first, last, pid, pepoch, sequence, count = _HEADER.unpack_from(
        data, position
    )
    if verify:
        actual = crc32c(data[position + _CRC_START : position + size])
        if actual != crc:
            raise CorruptLog(f"checksum is {actual:08x}, the batch says {crc:08x}", position=position)
    if base < 0:
        raise CorruptLog(f"negative base offset {base}", position=position)
    if count < 0:
        raise CorruptLog(f"negative record count {count}", position=position)
    return BatchHeader(
        position=position,
        size=size,
        base_offset=base,
        magic=magic,
        crc=crc,
        attributes=attributes,
        max_timestamp=last,
        record_count=count,
        last_offset_delta=delta,
        base_timestamp=first,
        partition_leader_epoch=epoch,
        producer_id=pid,
        producer_epoch=pepoch,
        base_sequence=sequence,
    )


def _read_header_legacy(data: bytes | memoryview, position: int, size: int, magic: int, verify: bool) -> BatchHeader:
    if size < LOG_OVERHEAD + _LEGACY_OVERHEAD[magic]:
        raise CorruptLog(f"a message of {size} bytes is shorter than its header", position=position)
    offset, _, crc, _, attributes = struct.unpack_from(">qiIbb", data, position)
    if offset < 0:
        raise CorruptLog(f"negative offset {offset}", position=position)
    if verify:
        actual = zlib.crc32(data[position + 16 : position + size])
        if actual != crc:
            raise CorruptLog(f"checksum is {actual:08x}, the message says {crc:08x}", position=position)
    timestamp: int = struct.unpack_from(">q", data, position + 18)[0] if magic == 1 else NO_TIMESTAMP
    return BatchHeader(
        position=position,
        size=size,
        base_offset=offset,
        magic=magic,
        crc=crc,
        attributes=attributes,
        max_timestamp=timestamp,
        record_count=1,
        base_timestamp=timestamp,
    )


def read_batch(data: bytes | memoryview, position: int = 0) -> RecordBatch:
    """The batch at `position`, checked and opened."""
    header = read_header(data, position)
    return RecordBatch(header, read_records(header, data))


class Walk(NamedTuple):
    """How a walk over batches ended: at which byte, and whether nothing behind it can be used."""

    position: int
    lost: bool


def read_batches(
    data: bytes | memoryview,
    start: int = 0,
    *,
    final: bool = True,
    on_damage: Callable[[CorruptLog], None] | None = None,
) -> Generator[RecordBatch, None, Walk]:
    """Every batch from `start` on, opened; one whose records are damaged is left out, as `read_headers` has it."""
    headers = read_headers(data, start, final=final, on_damage=on_damage)
    while True:
        try:
            header = next(headers)
        except StopIteration as end:
            walk: Walk = end.value
            return walk
        try:
            records = read_records(header, data)
        except CorruptLog as damage:
            if on_damage is None:
                raise
            on_damage(damage.retold())
        else:
            yield RecordBatch(header, records)


def read_headers(
    data: bytes | memoryview,
    start: int = 0,
    *,
    final: bool = True,
    on_damage: Callable[[CorruptLog], None] | None = None,
) -> Generator[BatchHeader, None, Walk]:
    """The header of every batch from `start` on, its checksum taken.

    With `final`, nothing follows `data`, so a batch that is cut off is damage; without, the walk ends before it.
    Damage is raised; or, with `on_damage`, reported, and the walk goes on behind it: where a batch's frame is damaged,
    only if a sound batch begins at the end that it claims.
    """
    position = start
    while position < len(data):
        if not final and undecided(data, position):
            break
        try:
            header = read_header(data, position)
        except CorruptLog as damage:
            if on_damage is None:
                raise
            if not final and undecided(data, claimed_end(data, position)):
                break
            on_damage(damage.retold())
            resumed = resume_position(data, position)
            if resumed is None:
                return Walk(len(data), lost=True)
            position = resumed
            continue
        position = header.end
        yield header
    return Walk(position, lost=False)


def undecided(data: bytes | memoryview, position: int | None) -> bool:
    """Whether it takes bytes behind `data` to tell what stands at `position`."""
    if position is None:
        return False
    if len(data) - position < LOG_OVERHEAD:
        return True
    end = claimed_end(data, position)
    return end is not None and end > len(data)


def claimed_end(data: bytes | memoryview, position: int) -> int | None:
    """Where the batch at `position` says that it ends, there or not; None if that cannot be."""
    length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if len(data) - position < LOG_OVERHEAD or not _LEGACY_OVERHEAD[0] <= length <= MAX_BATCH_BYTES - LOG_OVERHEAD:
        return None
    return position + LOG_OVERHEAD + length


def resume_position(data: bytes | memoryview, position: int) -> int | None:
    """Where a walk may go on behind a damaged batch: its claimed end, if a sound batch begins there."""
    behind = claimed_end(data, position)
    if behind is None or behind >= len(data):
        return None
    try:
        read_header(data, behind)
    except CorruptLog:
        return None
    return behind


def read_records(header: BatchHeader, data: bytes | memoryview) -> tuple[Record, ...]:
    """The records of a batch whose header was read from `data`."""
    try:
        if header.magic < 2:
            return tuple(_read_legacy(header, data))
        return tuple(decode_records(header, open_body(header, data)))
    except CorruptLog as damage:
        raise CorruptLog(damage.reason, position=header.position) from None


def open_body(header: BatchHeader, data: bytes | memoryview) -> bytes:
    """The records of a batch of format 2 in their own bytes, decompressed."""
    return decompress(header.codec, bytes(data[header.position + HEADER_SIZE : header.end]))


def check_record_count(header: BatchHeader, body: bytes) -> None:
    """Refuse a count that the bytes cannot hold, before anybody makes room for so many."""
    if header.record_count * SMALLEST_RECORD > len(body):
        raise CorruptLog(f"{header.record_count} records claimed in {len(body)} bytes")


def decode_records(header: BatchHeader, body: bytes) -> Iterator[Record]:
    """The records of format 2 in an uncompressed body."""
    check_record_count(header, body)
    position = 0
    fixed_time = header.max_timestamp if header.is_log_append_time else None
    for _ in range(header.record_count):
        size, position = varint(body, position)
        end = position + size
        if size < 0 or end > len(body):
            raise CorruptLog(f"a record of {size} bytes where {len(body) - position} are left")
        position += 1  # record attributes: unused in every release
        delta, position = varlong(body, position)
        timestamp = fixed_time if fixed_time is not None else wrap64(header.base_timestamp + delta)
        delta, position = varint(body, position)
        offset = wrap64(header.base_offset + delta)
        key, position = varbytes(body, position, end)
        value, position = varbytes(body, position, end)
        count, position = varint(body, position)
        headers: tuple[Header, ...] = ()
        if count:
            headers, position = _read_headers(body, position, end, count)
        if position != end:
            raise CorruptLog(f"a record of {size} bytes holds {size + position - end}")
        yield Record(offset, timestamp, key, value, headers)
    if position != len(body):
        raise CorruptLog(f"{len(body) - position} bytes behind the last record")


def _read_headers(body: bytes, position: int, end: int, count: int) -> tuple[tuple[Header, ...], int]:
    if count < 0 or count > end - position:
        raise CorruptLog(f"{count} record headers claimed in {end - position} bytes")
    headers = []
    for _ in range(count):
        key, position = varbytes(body, position, end)
        if key is None:
            raise CorruptLog("a record header without a key")
        value, position = varbytes(body, position, end)
        headers.append(Header(text(key), value))
    return tuple(headers), position


def _encode_records(header: BatchHeader, records: Sequence[Record]) -> bytes:
    out = bytearray()
    for record in records:
        body = bytearray(1)
        put_varlong(body, record.timestamp - header.base_timestamp)
        put_varlong(body, record.offset - header.base_offset)
        put_varbytes(body, record.key)
        put_varbytes(body, record.value)
        if record.headers:
            put_varlong(body, len(record.headers))
            for key, value in record.headers:
                put_varbytes(body, utf8(key))
                put_varbytes(body, value)
        else:
            body.append(0)
        put_varlong(out, len(body))
        out += body
    return bytes(out)


def _read_legacy(header: BatchHeader, data: bytes | memoryview) -> Iterator[Record]:
    """A message of format 0 or 1; a compressed one wraps a whole set of them."""
    key, value = _read_message(header, data)
    if header.codec == Codec.NONE:
        yield Record(header.base_offset, header.max_timestamp, key, value)
        return
    if value is None:
        raise CorruptLog("a compressed message without a value")
    inner_data = decompress(header.codec, value, magic=header.magic)
    inner = []
    position = 0
    while position < len(inner_data):
        message = read_header(inner_data, position)
        if message.magic != header.magic or message.codec != Codec.NONE:
            raise CorruptLog("a compressed message wraps one of another format")
        inner.append(message)
        position = message.end
    # Format 1 counts inner offsets from 0 and gives the wrapper the last absolute one; format 0 keeps them absolute.
    shift = header.base_offset - inner[-1].base_offset if header.magic == 1 and inner else 0
    if any(abs(message.base_offset - inner[0].base_offset) > _MAX_OFFSET_DELTA for message in inner):
        raise CorruptLog("a compressed message wraps offsets that lie too far apart")
    for message in inner:
        key, value = _read_message(message, inner_data)
        timestamp = header.max_timestamp if header.is_log_append_time else message.max_timestamp
        yield Record(wrap64(message.base_offset + shift), timestamp, key, value)


def _read_message(header: BatchHeader, data: bytes | memoryview) -> tuple[bytes | None, bytes | None]:
    start = header.position + LOG_OVERHEAD + _LEGACY_OVERHEAD[header.magic] - 8
    key, position = _sized_bytes(data, start, header.end)
    value, position = _sized_bytes(data, position, header.end)
    if position != header.end:
        raise CorruptLog(f"{header.end - position} bytes behind the value of a message")
    return key, value


def _sized_bytes(data: bytes | memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    if end - position < 4:
        raise CorruptLog("a message ends inside a length")
    size = int.from_bytes(data[position : position + 4], "big", signed=True)
    position += 4
    if size < 0:
        return None, position
    if size > end - position:
        raise CorruptLog(f"{size} bytes claimed where {end - position} are left in the message")
    return bytes(data[position : position + size]), position + size


def moved(header: BatchHeader, by: int) -> BatchHeader:
    """The same header, told from a place `by` bytes further ahead."""
    return replace(header, position=header.position + by)
