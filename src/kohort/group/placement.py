"""Which partition of `__consumer_offsets` a group belongs to, as every Kafka client and broker computes it."""

import struct
from collections.abc import Iterable


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, wrapping at 32 bits."""
    code = 0
    for unit in _utf16_units(text):
        code = (31 * code + unit) & 0xFFFF_FFFF
    return code - 0x1_0000_0000 if code & 0x8000_0000 else code


def _utf16_units(text: str) -> Iterable[int]:
    if text.isascii():
        return text.encode()
    units = text.encode("utf-16-le", "surrogatepass")
    return struct.unpack(f"<{len(units) // 2}H", units)


def partition_for(group_id: str, partitions: int) -> int:
    """The smallest int has no positive counterpart in Java and counts as 0."""
    code = java_hash(group_id)
    return 0 if code == -0x8000_0000 else abs(code) % partitions
