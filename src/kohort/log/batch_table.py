"""The headers of many batches as columns: what the compiled walk found, looked at as a whole or one by one.

This module is light: it imports no compiler, so that whoever only asks "is it a table?" pays nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

from kohort.records.batch import NO_PRODUCER_ID, BatchHeader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]


class TableIndex(NamedTuple):
    """What the sparse indexes take from a table: entries, and where the counting stands behind its last batch."""

    offsets: list[int]
    positions: list[int]
    times: list[tuple[int, int]]
    bytes_since_index: int
    max_timestamp: int
    offset_of_max_timestamp: int


class BatchTable(Sequence[BatchHeader]):
    """Headers of batches of format 2, each a row; a `BatchHeader` is made when one is asked for."""

    def __init__(self, data: bytes, rows: "Longs") -> None:
        from kohort.records import kernels

        self._data = data
        self._rows = rows
        self.positions: Longs = rows[:, kernels.POSITION]
        self.sizes: Longs = rows[:, kernels.SIZE]
        self.base_offsets: Longs = rows[:, kernels.BASE_OFFSET]
        self.deltas: Longs = rows[:, kernels.LAST_OFFSET_DELTA]
        self.last_offsets: Longs = self.base_offsets + self.deltas
        self.max_timestamps: Longs = rows[:, kernels.MAX_TIMESTAMP]
        self.leader_epochs: Longs = rows[:, kernels.LEADER_EPOCH]
        self.producer_ids: Longs = rows[:, kernels.PRODUCER_ID]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> BatchHeader: ...

    @overload
    def __getitem__(self, index: slice) -> "BatchTable": ...

    def __getitem__(self, index: "int | slice") -> "BatchHeader | BatchTable":
        from kohort.records.batch import read_header

        if isinstance(index, slice):
            return BatchTable(self._data, self._rows[index])
        return read_header(self._data, int(self.positions[index]), verify=False)

    def first_disorder(self, base_offset: int, last_offset: int, reach: int) -> int | None:
        """The first batch whose offsets do not follow those before it, or lie out of reach of the base offset."""
        import numpy as np

        before = np.concatenate([[last_offset], self.last_offsets[:-1]])
        bad = (self.deltas < 0) | (self.base_offsets <= before) | (self.last_offsets - base_offset > reach)
        found = np.flatnonzero(bad)
        return int(found[0]) if len(found) else None

    def index_entries(
        self, bytes_since_index: int, interval: int, max_timestamp: int, offset_of_max_timestamp: int
    ) -> TableIndex:
        """Index entries as they would come batch by batch, going on from what was there before."""
        import numpy as np

        from kohort.records import fold_kernels

        points = np.empty(len(self), np.int64)
        count, left = fold_kernels.index_points(np.ascontiguousarray(self.sizes), bytes_since_index, interval, points)
        points = points[:count]
        youngest = np.maximum.accumulate(np.concatenate([[max_timestamp], self.max_timestamps]))
        rises = np.flatnonzero(youngest[1:] > youngest[:-1])
        risen = np.searchsorted(rises, np.append(points, len(self) - 1), side="right")
        offsets = np.concatenate([[offset_of_max_timestamp], self.last_offsets[rises]])[risen]
        return TableIndex(
            self.last_offsets[points].tolist(),
            self.positions[points].tolist(),
            list(zip(youngest[1:][points].tolist(), offsets[:-1].tolist(), strict=True)),
            int(left),
            int(youngest[-1]),
            int(offsets[-1]),
        )

    def last_until(self, position: int) -> BatchHeader | None:
        """The last batch that ends at or before a byte."""
        import numpy as np

        number = int(np.searchsorted(self.positions + self.sizes, position, side="right"))
        return self[number - 1] if number else None

    def milestones(self) -> list[int]:
        """The batches of producers, those of a new leader epoch, the first and the last."""
        import numpy as np

        chosen = self.producer_ids != NO_PRODUCER_ID
        chosen[1:] |= self.leader_epochs[1:] != self.leader_epochs[:-1]
        chosen[:1] = chosen[-1:] = True
        return np.flatnonzero(chosen).tolist()
