"""How a cleaned segment takes the place of old ones, so that a crash at any step leaves the old log or the new one.

1. The cleaner writes `N.log.cleaned` and syncs it. While any `.cleaned` is there, the whole is void.
2. For each other old segment an empty `.log.swap` is made: nothing is left of it. The aborted transactions that remain
   are written to `N.txnindex.swap`. Then `N.log.cleaned` becomes `N.log.swap`: from here on the clean will be finished.
3. The old segments become `.deleted`, their indexes first.
4. `N.txnindex.swap`, then `N.log.swap` take their final names; the empty ones go.

After each step the directory is synced. `settle_swaps` looks at what a crash has left and undoes or finishes it; every
step is its own repetition, so that it may itself be cut short.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from kohort.log.files import Files, join, write_whole
from kohort.log.names import (
    CLEANED,
    DELETED,
    INDEX_SUFFIXES,
    LOG,
    SWAP,
    TXN_INDEX,
    OffsetFile,
    offset_file,
    parse_offset_file,
)
from kohort.log.scan import Pause, scan_segment
from kohort.log.segment import Segment
from kohort.log.txn_index import TransactionIndex


@dataclass(frozen=True, slots=True)
class Replacement:
    """A cleaned segment that is in its place on the disk, if anything was left, and the old ones that it stands for."""

    old: Sequence[Segment]
    end_offset: int
    """Where what follows on them begins."""
    new: Segment | None
    retired: Sequence[str]
    """Files that are out of use."""


def offset_files(files: Files, directory: str) -> list[OffsetFile]:
    """The files of a partition that are named after offsets, by offset."""
    parsed = (parse_offset_file(name) for name in files.list_dir(directory))
    return sorted(file for file in parsed if file)


def retire(files: Files, directory: str, base_offset: int) -> list[str]:
    """Take a segment out of use: its files become `.deleted`, durably. Returns their paths."""
    deleted = []
    for kinds in (INDEX_SUFFIXES, (LOG,)):
        for kind in kinds:
            path = join(directory, offset_file(base_offset, kind))
            if files.exists(path):
                files.rename(path, path + DELETED)
                deleted.append(path + DELETED)
        files.sync_dir(directory)
    return deleted


def remaining_aborted(
    files: Files, cleaned_path: str, old_segments: Sequence[Segment], pause: Pause | None = None
) -> TransactionIndex:
    """The aborted transactions whose markers the cleaner has kept; a cleaned file with damage is `CorruptLog`.

    A reader leaves out an aborted producer's batches until it meets the marker: without one it must not be told.
    """
    markers: set[int] = set()
    with contextlib.closing(files.open(cleaned_path)) as file:
        for window in scan_segment(file, old_segments[0].base_offset, pause=pause):
            if window.damage is not None:
                raise window.damage
            markers.update(header.last_offset for header in window.headers if header.is_control)
    aborted = (entry for segment in old_segments for entry in segment.txn_index)
    return TransactionIndex(entry for entry in aborted if entry.last_offset in markers)


def begin_swap(
    files: Files, directory: str, base_offset: int, merged: Sequence[int], txn_index: TransactionIndex
) -> None:
    """Steps 1 and 2: `base_offset` names the cleaned segment, `merged` the other old segments that go into it.

    Cleaned files of lower segments, which would make this swap void after a crash, are leftovers, and are removed.
    """
    files.sync_dir(directory)  # the name of `.cleaned`: while it is on the disk, the names below mean nothing
    leftovers = [file for file in offset_files(files, directory) if file.state == CLEANED and file.offset < base_offset]
    for file in leftovers:
        files.unlink(join(directory, offset_file(*file)))
    for other in merged:
        with contextlib.closing(files.open(join(directory, offset_file(other, LOG, SWAP)), create=True)) as empty:
            empty.truncate(0)
            empty.sync()
    if len(txn_index):
        write_whole(files, join(directory, offset_file(base_offset, TXN_INDEX, SWAP)), txn_index.encode())
    files.sync_dir(directory)
    cleaned = join(directory, offset_file(base_offset, LOG, CLEANED))
    files.rename(cleaned, join(directory, offset_file(base_offset, LOG, SWAP)))
    files.sync_dir(directory)


def settle_swaps(files: Files, directory: str) -> list[str]:
    """Undo or finish what was begun. Returns the paths of files that are out of use now.

    `CorruptLog` if a file that is to take its place is damaged; then no segment was touched.
    """
    _undo_cleaned(files, directory)
    return finish_swaps(files, directory)


def _undo_cleaned(files: Files, directory: str) -> None:
    there = offset_files(files, directory)
    cleaned = [file for file in there if file.state == CLEANED]
    if not cleaned:
        return
    void = [file for file in there if file.state == SWAP and file.offset >= cleaned[0].offset]
    for doomed in (void, cleaned):
        for file in doomed:
            files.unlink(join(directory, offset_file(*file)))
        files.sync_dir(directory)


def finish_swaps(files: Files, directory: str, pause: Pause | None = None) -> list[str]:
    """Steps 3 and 4, for every swap that is there."""
    there = offset_files(files, directory)
    in_use = {file.offset for file in there if file.kind == LOG and not file.state}
    swaps = [file.offset for file in there if file.kind == LOG and file.state == SWAP]
    ends = {base: _end_offset(files, directory, base, pause) for base in swaps}
    deleted = []
    for base in swaps:
        for old in sorted(old for old in in_use if base <= old < max(ends[base], base + 1)):
            deleted += retire(files, directory, old)
            in_use.remove(old)
    for file in there:
        if file.state == SWAP and file.kind in INDEX_SUFFIXES:
            path = join(directory, offset_file(*file))
            if file.kind == TXN_INDEX and file.offset in swaps:
                files.rename(path, path.removesuffix(SWAP))
            else:
                files.unlink(path)
    if swaps:
        files.sync_dir(directory)
    for base in swaps:
        path = join(directory, offset_file(base, LOG, SWAP))
        if ends[base] > base or not any(other < base for other in in_use):
            files.rename(path, path.removesuffix(SWAP))
            in_use.add(base)
        else:
            files.unlink(path)
    if swaps:
        files.sync_dir(directory)
    return deleted


def _end_offset(files: Files, directory: str, base_offset: int, pause: Pause | None) -> int:
    """The offset behind the last batch of a swap file; damage is raised."""
    end = base_offset
    with contextlib.closing(files.open(join(directory, offset_file(base_offset, LOG, SWAP)))) as file:
        for window in scan_segment(file, base_offset, pause=pause):
            if window.damage is not None:
                raise window.damage
            end = window.headers[-1].next_offset
    return end
