"""The numbers of records in format 2: zigzag varints, and byte strings behind one."""

from kohort.errors import CorruptLog
from kohort.records.primitives import wrap32, wrap64


def varbytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = varint(body, position)
    if size < 0:
        return None, position
    if size > end - position:
        raise CorruptLog(f"{size} bytes claimed where {end - position} are left in the record")
    return body[position : position + size], position + size


def varint(body: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of at most 5 bytes; bits beyond 32 are lost, as in Java."""
    raw, position = _unsigned(body, position, 5)
    return wrap32((raw & 0xFFFF_FFFF) >> 1 ^ -(raw & 1)), position


def varlong(body: bytes, position: int) -> tuple[int, int]:
    raw, position = _unsigned(body, position, 10)
    return wrap64((raw & 0xFFFF_FFFF_FFFF_FFFF) >> 1 ^ -(raw & 1)), position


def _unsigned(body: bytes, position: int, most: int) -> tuple[int, int]:
    value = shift = 0
    for byte in body[position : position + most]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise CorruptLog("the records end inside a number" if shift < 7 * most else f"a varint of more than {most} bytes")


def put_varbytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)
    else:
        put_varlong(out, len(value))
        out += value


def put_varlong(out: bytearray, value: int) -> None:
    if 0 <= value < 64:
        out.append(value << 1)
        return
    value = wrap64(value)
    raw = (value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
