"""Which of the disks that a power cut may leave are worth a look, and in which order.

Every unsynced change of a disk has a number, in the order in which they were made. A `Choice` says which of them
reached the disk. `choices` tells those first that break programs most: all lost, all kept, each prefix, contents
without names and names without contents, each single change lost, each single one kept, some names lost, each write
torn, then all other subsets. The newest changes come first, for the oldest have been tried at earlier moments; each
kind has its turn. No chance is involved: the same changes give the same choices.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from kohort.log.recorded_files import Truncated, Written

SECTOR = 512
_HEADER_CUTS = (1, 8, 12, 16, 17, 21, 23, 27, 35, 43, 57, 60, 61, 62, 64)


class Fill(Enum):
    """What stands where bytes never arrived."""

    ZERO = "zero"
    JUNK = "junk"
    STALE = "stale"
    """The beginning of the same file over again: sound batches in the wrong place."""


@dataclass(frozen=True, slots=True)
class Part:
    """How much of a write arrived: the bytes from `start` up to `stop`; with `sized` the file has its new size."""

    start: int
    stop: int
    sized: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Which unsynced changes reached the disk, by number; at most one of the writes in part."""

    kept: frozenset[int]
    torn: int = -1
    part: Part = Part(0, 0, False)
    fill: Fill = Fill.ZERO


Changes = Mapping[int, Written | Truncated]
"""The unsynced changes of one file, by number."""


def choices(directories: Sequence[Collection[int]], files: Sequence[Changes], *, every_byte: bool) -> Iterator[Choice]:
    """The choices among the unsynced changes of directories and files; with `every_byte` writes are torn everywhere."""
    names = sorted(number for changes in directories for number in changes)
    contents = sorted(number for changes in files for number in changes)
    every = sorted(names + contents)
    newest = every[::-1]
    whole = frozenset(every)
    yield Choice(frozenset())
    yield Choice(whole)
    yield from _in_turn(
        (Choice(frozenset(every[:count])) for count in range(len(every) - 1, 0, -1)),
        (Choice(frozenset(kept)) for kept in (names, contents)),
        (Choice(whole - {number}, fill=fill) for number in newest for fill in Fill),
        (Choice(frozenset([number]), fill=fill) for number in newest for fill in Fill),
        (Choice(whole - set(lost)) for lost in _subsets(names[::-1])),
        _torn(newest, files, every_byte),
        (Choice(frozenset(kept)) for kept in _subsets(newest)),
    )


def _torn(newest: list[int], files: Sequence[Changes], every_byte: bool) -> Iterator[Choice]:
    """Each write in part, with everything before it and everything elsewhere."""
    file_of = {number: changes for changes in files for number in changes}
    for number in newest:
        change = file_of[number][number] if number in file_of else None
        if isinstance(change, Written):
            before = frozenset(other for other in newest if other < number)
            elsewhere = frozenset(newest) - file_of[number].keys()
            for part in _parts(change, every_byte):
                for fill in Fill if part.sized else (Fill.ZERO,):
                    yield Choice(before | elsewhere, number, part, fill)
            yield Choice(before, number, Part(0, len(change.data) // 2, False))


def _parts(write: Written, every_byte: bool) -> Iterator[Part]:
    """The ways in which a write may arrive in part."""
    size = len(write.data)
    sectors = [cut - write.position for cut in range(write.position // SECTOR * SECTOR, write.position + size, SECTOR)]
    cuts = {*_HEADER_CUTS, *sectors, size // 2, size - 1} if not every_byte else set(range(size))
    yield Part(0, 0, True)
    for cut in sorted(cuts):
        if 0 < cut < size:
            yield Part(0, cut, False)
            yield Part(0, cut, True)
    for cut in sectors:
        if 0 < cut < size:
            yield Part(cut, size, True)


def _subsets(newest: list[int]) -> Iterator[tuple[int, ...]]:
    """Every choice of two and more, those of the newest first."""
    for count in range(2, len(newest) + 1):
        for among in range(count, len(newest) + 1):
            for others in combinations(newest[: among - 1], count - 1):
                yield (*others, newest[among - 1])


def _in_turn(*kinds: Iterator[Choice]) -> Iterator[Choice]:
    """One of each kind, again and again, until none is left."""
    waiting = list(kinds)
    while waiting:
        taken = [(kind, choice) for kind in waiting if (choice := next(kind, None)) is not None]
        yield from (choice for _, choice in taken)
        waiting = [kind for kind, _ in taken]
