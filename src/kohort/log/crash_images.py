"""What a disk may hold after the power failed: every legal mixture of what was synced and what was not.

A `Disk` is fed the operations that `RecordingFiles` wrote down. Per file it knows the synced bytes and the changes
after them, per directory the synced entries and the changes after those. `images` makes disks that could be found after
a power cut at this moment:

- of all unsynced changes any subset may have reached the disk, applied in their order; a change to a directory only if
  the file system could do it (no rename of a name that never came to be, no new file where the old one still stands);
- a write may have arrived in part: up to some byte, or without its first sectors, with the file's size grown or not;
- where a file has grown over bytes that never arrived stand zeros, junk, or what a file like this once held.

The sync of a file says nothing about its name, and the sync of a directory nothing about the contents in it. After a
sync that failed the changes before it stay unsynced whatever is synced later, for the operating system takes them for
written: only what is written once more can be made safe.

There are too many images to try them all, except for the smallest moments; `crash_choices.py` says which come first.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from kohort.log.crash_choices import Choice, Fill, Part, choices
from kohort.log.recorded_files import (
    DirMade,
    DirRemoved,
    DirSynced,
    Opened,
    Operation,
    Renamed,
    Synced,
    SyncFailed,
    Truncated,
    Unlinked,
    Written,
)
from kohort.log.simulated_files import Image

_JUNK = random.Random(61).randbytes(4096)
_ROOT = 0


@dataclass(frozen=True, slots=True)
class _Linked:
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class _Removed:
    name: str
    node: int


@dataclass(frozen=True, slots=True)
class _Moved:
    name: str
    new_name: str
    node: int


@dataclass(slots=True)
class _File:
    synced: bytes = b""
    pending: dict[int, Written | Truncated] = field(default_factory=dict)
    doubtful: set[int] = field(default_factory=set)
    """Those of the pending changes whose sync has failed."""
    sure: dict[int, Written | Truncated] = field(default_factory=dict)
    """Changes that were synced behind doubtful ones."""

    def sync(self) -> None:
        if self.doubtful:
            self.sure |= {number: change for number, change in self.pending.items() if number not in self.doubtful}
            self.pending = {number: change for number, change in self.pending.items() if number in self.doubtful}
        else:
            self.synced = _content(self, Choice(frozenset(self.pending)))
            self.pending.clear()

    def changes(self) -> list[tuple[int, Written | Truncated]]:
        """All that came after the synced bytes, in order."""
        if not self.sure:
            return list(self.pending.items())
        return sorted((self.sure | self.pending).items(), key=lambda change: change[0])


@dataclass(slots=True)
class _Directory:
    synced: dict[str, int] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    pending: dict[int, _Linked | _Removed | _Moved] = field(default_factory=dict)


class Disk:
    """A disk under way: what is safe on it, and what the power may still take."""

    def __init__(self, image: Mapping[str, bytes | None]) -> None:
        self._nodes: list[_File | _Directory] = [_Directory()]
        self._handles: dict[int, int] = {}
        self._number = 0
        for path, data in image.items():
            directory, name = self._parent(path)
            node = self._add(_Directory() if data is None else _File(data))
            directory.synced[name] = directory.current[name] = node

    def apply(self, operation: Operation) -> None:
        """Let one operation happen."""
        match operation:
            case Opened(path, handle, created):
                if created:
                    self._link(path, _File())
                directory, name = self._parent(path)
                self._handles[handle] = directory.current[name]
            case Written(handle) | Truncated(handle):
                self._file(self._handles[handle]).pending[self._next()] = operation
            case Synced(handle):
                self._file(self._handles[handle]).sync()
            case SyncFailed(handle):
                file = self._file(self._handles[handle])
                file.doubtful |= file.pending.keys()
            case DirMade(path):
                self._link(path, _Directory())
            case Unlinked(path) | DirRemoved(path):
                directory, name = self._parent(path)
                directory.pending[self._next()] = _Removed(name, directory.current.pop(name))
            case Renamed(old, new):
                directory, name = self._parent(old)
                new_name = new.rpartition("/")[2]
                node = directory.current.pop(name)
                directory.current[new_name] = node
                directory.pending[self._next()] = _Moved(name, new_name, node)
            case DirSynced(path):
                directory = self._directory(path)
                directory.synced = dict(directory.current)
                directory.pending.clear()

    def image(self, choice: Choice) -> Image:
        """The disk that is found if exactly this reached it."""
        out: Image = {}
        self._collect("", _ROOT, choice, out)
        return out

    def images(self, limit: int, *, every_byte: bool = False) -> Iterator[Image]:
        """Different disks that may be found, at most `limit`; with `every_byte` each write is torn everywhere."""
        seen = set()
        directories = [node.pending for node in self._nodes if isinstance(node, _Directory)]
        files = [node.pending for node in self._nodes if isinstance(node, _File)]
        for choice in islice(choices(directories, files, every_byte=every_byte), 8 * limit):
            image = self.image(choice)
            key = tuple(image.items())
            if key not in seen:
                seen.add(key)
                yield image
                if len(seen) == limit:
                    return

    def whole_image(self) -> Image:
        """The disk if everything reaches it."""
        return self.image(Choice(frozenset(self._pending())))

    def any_image(self, chance: random.Random) -> Image:
        """One of all disks that may be found: any subset of the changes, and one of the writes in part."""
        pending = self._pending()
        share = chance.choice((0.0, 0.5, 0.9, 1.0))
        kept = frozenset(number for number in sorted(pending) if chance.random() < share)
        writes = {number: change.data for number, change in pending.items() if isinstance(change, Written)}
        torn = chance.choice([number for number in sorted(writes) if writes[number]] or [None])
        fill = chance.choice(list(Fill))
        if torn is None or chance.random() < 0.5:
            return self.image(Choice(kept, fill=fill))
        size = len(writes[torn])
        start = chance.choice((0, 0, 0, chance.randrange(size)))
        part = Part(start, chance.randint(start, size), chance.random() < 0.5)
        return self.image(Choice(kept - {torn}, torn, part, fill))

    def _pending(self) -> dict[int, object]:
        return {number: change for node in self._nodes for number, change in node.pending.items()}

    def _collect(self, path: str, node: int, choice: Choice, out: Image) -> None:
        for name, child in sorted(_entries(self._directory_node(node), choice).items()):
            below = f"{path}/{name}"
            found = self._nodes[child]
            if isinstance(found, _Directory):
                out[below] = None
                self._collect(below, child, choice, out)
            else:
                out[below] = _content(found, choice)

    def _link(self, path: str, node: _File | _Directory) -> None:
        directory, name = self._parent(path)
        directory.current[name] = self._add(node)
        directory.pending[self._next()] = _Linked(name, directory.current[name])

    def _add(self, node: _File | _Directory) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _parent(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _directory(self, path: str) -> _Directory:
        node = _ROOT
        for name in path.split("/"):
            if name:
                node = self._directory_node(node).current[name]
        return self._directory_node(node)

    def _directory_node(self, node: int) -> _Directory:
        found = self._nodes[node]
        assert isinstance(found, _Directory)
        return found

    def _file(self, node: int) -> _File:
        found = self._nodes[node]
        assert isinstance(found, _File)
        return found


def crash_points(image: Mapping[str, bytes | None], operations: Iterable[Operation]) -> Iterator[Disk]:
    """The disk before the first operation and after each: the same object, moved on."""
    disk = Disk(image)
    yield disk
    for operation in operations:
        disk.apply(operation)
        yield disk


def _entries(directory: _Directory, choice: Choice) -> dict[str, int]:
    entries = dict(directory.synced)
    for number, change in directory.pending.items():
        if number not in choice.kept:
            continue
        match change:
            case _Linked(name, node) if name not in entries:
                entries[name] = node
            case _Removed(name, node) if entries.get(name) == node:
                del entries[name]
            case _Moved(name, new_name, node) if entries.get(name) == node:
                del entries[name]
                entries[new_name] = node
    return entries


def _content(file: _File, choice: Choice) -> bytes:
    changes = file.changes()
    if not changes:
        return file.synced
    data = bytearray(file.synced)
    for number, change in changes:
        is_kept = number in choice.kept or number in file.sure
        if isinstance(change, Truncated):
            if is_kept:
                del data[change.size :]
                data += bytes(change.size - len(data))
            continue
        if number == choice.torn:
            part = choice.part
        elif is_kept:
            part = Part(0, len(change.data), True)
        else:
            continue
        _grow(data, change.position + part.start, file, choice.fill)
        start = change.position + part.start
        data[start : start + part.stop - part.start] = change.data[part.start : part.stop]
        if part.sized:
            _grow(data, change.position + len(change.data), file, choice.fill)
    return bytes(data)


def _grow(data: bytearray, size: int, file: _File, fill: Fill) -> None:
    missing = size - len(data)
    if missing <= 0:
        return
    match fill:
        case Fill.ZERO:
            data += bytes(missing)
        case Fill.JUNK:
            data += (_JUNK * (missing // len(_JUNK) + 1))[:missing]
        case Fill.STALE:
            stale = file.synced or bytes(data) or _JUNK
            data += (stale * (missing // len(stale) + 1))[:missing]
