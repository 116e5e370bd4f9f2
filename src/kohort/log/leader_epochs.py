"""Which leader wrote what: the offset at which each epoch of leadership began, kept in `leader-epoch-checkpoint`."""

from bisect import bisect_right
from typing import NamedTuple

from kohort.errors import CorruptLog
from kohort.log.checkpoints import read_leader_epochs, write_leader_epochs
from kohort.log.files import Files
from kohort.records.batch import NO_LEADER_EPOCH


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one partition, oldest first. Changes are in memory until `save`."""

    def __init__(self, files: Files, path: str, entries: list[EpochEntry]) -> None:
        self._files = files
        self._path = path
        self._entries = entries
        self._saved = list(entries)

    @classmethod
    def load(cls, files: Files, path: str) -> "LeaderEpochs":
        """The epochs in a checkpoint file; one that cannot be read counts as empty, for batches carry their epochs."""
        try:
            entries = [EpochEntry(*entry) for entry in read_leader_epochs(files, path)]
        except CorruptLog:
            entries = []
        return cls(files, path, entries)

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1].epoch if self._entries else NO_LEADER_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that the batch at `start_offset` is of this epoch."""
        if epoch > self.latest:
            self._entries.append(EpochEntry(epoch, start_offset))

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was written."""
        number = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[number - 1].epoch if number else NO_LEADER_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Forget epochs that began at `offset` or behind it."""
        self._entries = [entry for entry in self._entries if entry.start_offset < offset]

    def truncate_from_start(self, offset: int) -> None:
        """Forget epochs that ended before `offset`; the one that covers it begins there from now on."""
        number = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        if number:
            self._entries[:number] = [EpochEntry(self._entries[number - 1].epoch, offset)]

    def save(self) -> None:
        """Bring what has changed to the disk."""
        if self._entries != self._saved:
            write_leader_epochs(self._files, self._path, self._entries)
            self._saved = list(self._entries)
