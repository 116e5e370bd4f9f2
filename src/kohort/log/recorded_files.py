"""A door to the disk that writes down who went through: every change and every sync, in order.

`RecordingFiles` passes each call on to the files that it wraps, real or simulated, and then adds it to `operations`.
Whoever wants to know what was on the disk at some moment (was this acknowledged before its bytes were synced? what may
a power cut leave?) reads that list; `crash_images.py` does. Reads leave no trace. Open files are told apart by number,
as a name may be moved or removed while its file is open.
"""

from dataclasses import dataclass

from kohort.log.files import DiskSpace, File, Files


@dataclass(frozen=True, slots=True)
class Opened:
    path: str
    handle: int
    created: bool


@dataclass(frozen=True, slots=True)
class Written:
    handle: int
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    handle: int
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    handle: int


@dataclass(frozen=True, slots=True)
class SyncFailed:
    """Nobody can say what of the unsynced changes has arrived, and no later sync will say so either."""

    handle: int


@dataclass(frozen=True, slots=True)
class DirMade:
    path: str


@dataclass(frozen=True, slots=True)
class DirRemoved:
    path: str


@dataclass(frozen=True, slots=True)
class Renamed:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Unlinked:
    path: str


@dataclass(frozen=True, slots=True)
class DirSynced:
    path: str


Operation = Opened | Written | Truncated | Synced | SyncFailed | DirMade | DirRemoved | Renamed | Unlinked | DirSynced


class RecordingFile:
    """An open file whose changes are written down."""

    def __init__(self, inner: File, handle: int, operations: list[Operation]) -> None:
        self._inner = inner
        self._handle = handle
        self._operations = operations

    @property
    def path(self) -> str:
        return self._inner.path

    def size(self) -> int:
        return self._inner.size()

    def read_at(self, position: int, length: int) -> bytes:
        return self._inner.read_at(position, length)

    def append(self, data: bytes) -> None:
        position = self._inner.size()
        self._inner.append(data)
        self._operations.append(Written(self._handle, position, bytes(data)))

    def write_at(self, position: int, data: bytes) -> None:
        self._inner.write_at(position, data)
        self._operations.append(Written(self._handle, position, bytes(data)))

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._operations.append(Truncated(self._handle, size))

    def reserve(self, size: int) -> None:
        self._inner.reserve(size)
        self._operations.append(Truncated(self._handle, self._inner.size()))

    def sync(self) -> None:
        self._inner.sync()
        self._operations.append(Synced(self._handle))

    def note_failed_sync(self) -> None:
        """Somebody before us has made a sync fail."""
        self._operations.append(SyncFailed(self._handle))

    def close(self) -> None:
        self._inner.close()


class RecordingFiles:
    """Any files, with a list of what was done to them."""

    def __init__(self, inner: Files) -> None:
        self._inner = inner
        self._handles = 0
        self.operations: list[Operation] = []

    def open(self, path: str, *, create: bool = False) -> RecordingFile:
        existed = not create or self._inner.exists(path)
        return self._opened(path, self._inner.open(path, create=create), created=not existed)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def list_dir(self, path: str) -> list[str]:
        return self._inner.list_dir(path)

    def make_dir(self, path: str) -> None:
        existed = self._inner.exists(path)
        self._inner.make_dir(path)
        if not existed:
            self.operations.append(DirMade(path))

    def remove_dir(self, path: str) -> None:
        self._inner.remove_dir(path)
        self.operations.append(DirRemoved(path))

    def rename(self, old: str, new: str) -> None:
        self._inner.rename(old, new)
        self.operations.append(Renamed(old, new))

    def unlink(self, path: str) -> None:
        self._inner.unlink(path)
        self.operations.append(Unlinked(path))

    def sync_dir(self, path: str) -> None:
        self._inner.sync_dir(path)
        self.operations.append(DirSynced(path))

    def space(self, path: str) -> DiskSpace | None:
        return self._inner.space(path)

    def lock(self, path: str) -> RecordingFile:
        existed = self._inner.exists(path)
        return self._opened(path, self._inner.lock(path), created=not existed)

    def _opened(self, path: str, file: File, *, created: bool) -> RecordingFile:
        self._handles += 1
        self.operations.append(Opened(path, self._handles, created))
        return RecordingFile(file, self._handles, self.operations)
