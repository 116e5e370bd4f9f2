"""Who saw what first: requests, writes, syncs and answers of a broker, in one list, and a judge over it.

Whatever a request asks to be kept carries a mark (`mark-17`: an id, a group, metadata). A good answer may leave only
when, since the request came, the marks were written to a file that was synced after that, and every name on the way to
that file was synced with its directory.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from pathlib import PurePosixPath
from typing import Any

from kohort.broker.connection import Connection
from kohort.log.files import File, RealFiles
from kohort.log.recorded_files import (
    DirMade,
    DirSynced,
    Opened,
    Operation,
    RecordingFiles,
    Renamed,
    Synced,
    Written,
)
from tests.broker.wire_client import read_answer

_MARK = re.compile(rb"mark-\d+")


@dataclass(frozen=True, slots=True)
class SyncBegun:
    """What is written from now on need not be part of it."""

    path: str


@dataclass(frozen=True, slots=True)
class Asked:
    connection: int
    frame: bytes

    @property
    def api(self) -> int:
        return int.from_bytes(self.frame[0:2], "big")

    @property
    def version(self) -> int:
        return int.from_bytes(self.frame[2:4], "big")

    @property
    def correlation(self) -> bytes:
        return self.frame[4:8]


@dataclass(frozen=True, slots=True)
class Answered:
    connection: int
    frame: bytes


Event = Operation | SyncBegun | Asked | Answered


class TooSoon(AssertionError):
    """An answer left before what it promises was safe."""


class Witness:
    """The files of a broker, and its connections, all under one pair of eyes."""

    def __init__(self) -> None:
        self.files = RecordingFiles(_Noticing(self._note))
        self.events: list[Event] = self.files.operations  # type: ignore[assignment] # more than files go in there

    def _note(self, event: Event) -> None:
        self.events.append(event)

    def watch(self, replace: Callable[[type, str, Any], None]) -> None:
        """Note every request before it is handled and every answer before it is written to its socket."""
        handle, write_out = Connection._handle, Connection.write_out

        def seen_handle(connection: Connection, frame: bytes) -> None:
            self._note(Asked(id(connection), bytes(frame)))
            handle(connection, frame)

        def seen_write_out(connection: Connection) -> None:
            for frame in _frames(bytes(connection._answers)):
                self._note(Answered(id(connection), frame))
            write_out(connection)

        replace(Connection, "_handle", seen_handle)
        replace(Connection, "write_out", seen_write_out)

    def judge(self, apis: Iterable[int], since: int = 0) -> dict[int, int]:
        """How many good answers of each of these APIs kept their promise; `TooSoon` for the first that did not."""
        kept = dict.fromkeys(apis, 0)
        asked: dict[tuple[int, bytes], tuple[int, Asked]] = {}
        for place, event in enumerate(self.events):
            match event:
                case Asked() if event.api in kept and place >= since:
                    asked[event.connection, event.correlation] = place, event
                case Answered():
                    found = asked.pop((event.connection, event.frame[:4]), None)
                    if found is not None and self._judge(*found, place, event):
                        kept[found[1].api] += 1
        return kept

    def _judge(self, came: int, asked: Asked, left: int, answered: Answered) -> bool:
        marks = set(_MARK.findall(asked.frame))
        if not marks or not _is_good(read_answer(asked.api, asked.version, answered.frame)):
            return False
        safe = self._safe(came, left)
        for mark in marks:
            if not any(mark in data for data in safe):
                raise TooSoon(f"API {asked.api}: {mark!r} was answered before it was safe (event {left})")
        return True

    def _safe(self, came: int, left: int) -> list[bytes]:
        """What was written after one moment and safe before another."""
        paths: dict[int, str] = {}
        unsynced_names: dict[str, None] = {}
        written: dict[str, list[tuple[int, bytes]]] = {}
        begun: dict[str, list[int]] = {}
        """When the syncs that are under way have begun, by path."""
        synced: dict[str, list[bytes]] = {}
        for place, event in enumerate(self.events[:left]):
            match event:
                case Opened(path, handle, created):
                    paths[handle] = path
                    if created:
                        unsynced_names[path] = None
                case DirMade(path):
                    unsynced_names[path] = None
                case Renamed(_, new):
                    unsynced_names[new] = None
                case DirSynced(path):
                    for name in [name for name in unsynced_names if PurePosixPath(name).parent == PurePosixPath(path)]:
                        del unsynced_names[name]
                case Written(handle, _, data) if place > came:
                    written.setdefault(paths[handle], []).append((place, data))
                case SyncBegun(path):
                    begun.setdefault(path, []).append(place)
                case Synced(handle):
                    path = paths[handle]
                    began = begun[path].pop(0)
                    synced.setdefault(path, []).extend(d for at, d in written.get(path, ()) if at < began)
        reachable = (path for path in synced if not _way(path) & unsynced_names.keys())
        return [data for path in reachable for data in synced[path]]


def _way(path: str) -> set[str]:
    return {path, *map(str, PurePosixPath(path).parents)}


def _is_good(answer: Any) -> bool:
    """Whether no error stands anywhere in it."""
    if isinstance(answer, tuple):
        return all(map(_is_good, answer))
    if not is_dataclass(answer):
        return True
    if getattr(answer, "error_code", 0):
        return False
    return all(_is_good(getattr(answer, name)) for name in answer.__dataclass_fields__)


def _frames(data: bytes) -> Iterable[bytes]:
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        yield data[4:end]
        data = data[end:]


class _Noticing(RealFiles):
    """The operating system's files, each sync of which is noted when it begins."""

    def __init__(self, note: Callable[[Event], None]) -> None:
        self._note = note

    def open(self, path: str, *, create: bool = False) -> Any:
        return _NoticingFile(super().open(path, create=create), self._note)


class _NoticingFile:
    def __init__(self, inner: File, note: Callable[[Event], None]) -> None:
        self._inner = inner
        self._note = note

    def sync(self) -> None:
        self._note(SyncBegun(self._inner.path))
        self._inner.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
