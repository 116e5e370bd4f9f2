"""Where the records of a partition are in its copy.

A copy has no holes, so its offsets run ahead of the source's wherever one is missing there. Between two holes the
difference is the same, and such a stretch is all that is kept: two numbers.
"""

from array import array
from bisect import bisect_right


class OffsetMap:
    """Offsets of the source in their order, beside those of the copy, which are numbered from 0."""

    def __init__(self) -> None:
        self._sources = array("q")
        self._copies = array("q")
        self.end = 0
        """The offset behind the last record of the copy."""

    def add(self, source: int, count: int = 1) -> None:
        """The next records of the copy are those from this offset on, which follow each other."""
        if not self._sources or source - self._sources[-1] != self.end - self._copies[-1]:
            self._sources.append(source)
            self._copies.append(self.end)
        self.end += count

    def translate(self, offset: int) -> int:
        """Where the first record is that was copied and is not before this offset; the end, if there is none."""
        stretch = bisect_right(self._sources, offset) - 1
        if stretch < 0:
            return 0
        next_stretch = self._copies[stretch + 1] if stretch + 1 < len(self._copies) else self.end
        return min(self._copies[stretch] + offset - self._sources[stretch], next_stretch)

    @property
    def stretches(self) -> int:
        """How many there are."""
        return len(self._sources)
