"""A golden log that grows: each partition stands as far as some batch, wherever its segments begin."""

import struct
from collections.abc import Iterator
from pathlib import Path

from kohort.log.stored import find_partitions
from kohort.spark.inputs import OFFSETS_TOPIC

Batch = tuple[Path, bytes]
_ATTRIBUTES, _TRANSACTIONAL, _CONTROL = 21, 0x10, 0x20

STAGES = 4
"""How often it grows. At the first stage some transactions are open, if the log has any; at the last it is whole."""


class GrowingLog:
    """The log at a place of its own."""

    def __init__(self, golden: Path, place: Path) -> None:
        self._place = place
        self._partitions = [
            [batch for segment in stored.segments for batch in _batches(Path(segment))]
            for stored in find_partitions(str(golden), OFFSETS_TOPIC)
        ]

    def grow(self, stage: int) -> None:
        for batches in self._partitions:
            files: dict[Path, bytes] = {}
            first = _behind_an_open_transaction(batches)
            for path, data in batches[: first + (len(batches) - first) * stage // (STAGES - 1)]:
                place = self._place / path.parent.name / path.name
                files[place] = files.get(place, b"") + data
            for place, data in files.items():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)


def _batches(segment: Path) -> Iterator[Batch]:
    data, at = segment.read_bytes(), 0
    while at < len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        yield segment, data[at:end]
        at = end


def _behind_an_open_transaction(batches: list[Batch]) -> int:
    for number, (_, data) in enumerate(batches):
        (attributes,) = struct.unpack_from(">h", data, _ATTRIBUTES)
        if attributes & _TRANSACTIONAL and not attributes & _CONTROL:
            return number + 1
    return len(batches) // 3
