"""Files in memory behave like the operating system's: each test runs on both."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kohort.errors import StorageFailed
from kohort.log.files import File, Files, RealFiles, read_whole, write_whole
from kohort.log.recorded_files import (
    DirMade,
    DirSynced,
    Opened,
    RecordingFiles,
    Renamed,
    Synced,
    Truncated,
    Unlinked,
    Written,
)
from kohort.log.simulated_files import SimulatedFiles


@pytest.fixture(params=["simulated", "recorded", "real"])
def files(request: pytest.FixtureRequest) -> Files:
    match request.param:
        case "simulated":
            return SimulatedFiles()
        case "recorded":
            return RecordingFiles(SimulatedFiles())
        case _:
            return RealFiles()


@pytest.fixture
def root(files: Files, tmp_path: Path) -> str:
    if isinstance(files, RealFiles):
        return str(tmp_path)
    files.make_dir("/data")
    return "/data"


def _refused(number: int, call: Callable[[], object]) -> None:
    with pytest.raises(OSError, match=os.strerror(number)):
        call()


def test_what_was_written_is_read_back(files: Files, root: str) -> None:
    file = files.open(f"{root}/a", create=True)
    file.append(b"hello")
    file.append(b" world")
    file.write_at(0, b"J")
    file.sync()
    assert (file.size(), file.read_at(0, 100), file.read_at(6, 3), file.read_at(50, 3)) == (
        11,
        b"Jello world",
        b"wor",
        b"",
    )
    file.close()
    assert read_whole(files, f"{root}/a") == b"Jello world"


def test_a_write_behind_the_end_leaves_zeros_between(files: Files, root: str) -> None:
    file = files.open(f"{root}/a", create=True)
    file.write_at(3, b"x")
    assert file.read_at(0, 9) == b"\0\0\0x"


def test_truncating_cuts_and_grows(files: Files, root: str) -> None:
    file = files.open(f"{root}/a", create=True)
    file.append(b"abcdef")
    file.truncate(2)
    assert file.read_at(0, 9) == b"ab"
    file.truncate(4)
    file.append(b"!")
    assert file.read_at(0, 9) == b"ab\0\0!"


def test_opening_what_is_not_there_fails_and_creating_keeps_what_is(files: Files, root: str) -> None:
    _refused(errno.ENOENT, lambda: files.open(f"{root}/a"))
    write_whole(files, f"{root}/a", b"1")
    assert files.open(f"{root}/a", create=True).size() == 1
    _refused(errno.ENOENT, lambda: files.open(f"{root}/none/a", create=True))


def test_an_open_file_outlives_its_name(files: Files, root: str) -> None:
    file = files.open(f"{root}/a", create=True)
    files.rename(f"{root}/a", f"{root}/b")
    file.append(b"1")
    assert read_whole(files, f"{root}/b") == b"1"
    files.unlink(f"{root}/b")
    file.append(b"2")
    assert file.read_at(0, 9) == b"12"
    assert not files.exists(f"{root}/b")


def test_a_rename_replaces(files: Files, root: str) -> None:
    write_whole(files, f"{root}/a", b"old")
    write_whole(files, f"{root}/b", b"new")
    files.rename(f"{root}/b", f"{root}/a")
    assert (files.list_dir(root), read_whole(files, f"{root}/a")) == (["a"], b"new")
    _refused(errno.ENOENT, lambda: files.rename(f"{root}/b", f"{root}/a"))


def test_directories_are_made_listed_moved_and_removed(files: Files, root: str) -> None:
    files.make_dir(f"{root}/d")
    files.make_dir(f"{root}/d")
    write_whole(files, f"{root}/d/z", b"1")
    write_whole(files, f"{root}/d/y", b"2")
    assert files.list_dir(f"{root}/d") == ["y", "z"]
    files.rename(f"{root}/d", f"{root}/e")
    assert read_whole(files, f"{root}/e/z") == b"1"
    _refused(errno.ENOTEMPTY, lambda: files.remove_dir(f"{root}/e"))
    for name in files.list_dir(f"{root}/e"):
        files.unlink(f"{root}/e/{name}")
    files.remove_dir(f"{root}/e")
    assert files.list_dir(root) == []
    _refused(errno.ENOENT, lambda: files.list_dir(f"{root}/e"))
    _refused(errno.ENOENT, lambda: files.make_dir(f"{root}/e/f"))
    _refused(errno.ENOENT, lambda: files.sync_dir(f"{root}/e"))


def test_a_directory_is_not_a_file(files: Files, root: str) -> None:
    files.make_dir(f"{root}/d")
    write_whole(files, f"{root}/a", b"")
    _refused(errno.EISDIR, lambda: files.open(f"{root}/d"))
    _refused(errno.EISDIR, lambda: files.unlink(f"{root}/d"))
    _refused(errno.EISDIR, lambda: files.rename(f"{root}/a", f"{root}/d"))
    _refused(errno.ENOTDIR, lambda: files.rename(f"{root}/d", f"{root}/a"))
    _refused(errno.ENOTDIR, lambda: files.list_dir(f"{root}/a"))
    assert not files.exists(f"{root}/a/b")


def test_a_closed_file_is_closed(files: Files, root: str) -> None:
    file = files.open(f"{root}/a", create=True)
    file.close()
    for call in (lambda: file.append(b"1"), lambda: file.read_at(0, 1), file.sync, file.close):
        _refused(errno.EBADF, call)


def test_a_lock_is_held_until_it_is_closed(files: Files, root: str) -> None:
    held: File = files.lock(f"{root}/.lock")
    with pytest.raises(StorageFailed):
        files.lock(f"{root}/.lock")
    held.close()
    files.lock(f"{root}/.lock").close()


def test_files_made_of_an_image_share_nothing_that_is_written() -> None:
    first = SimulatedFiles()
    first.make_dir("/d")
    write_whole(first, "/d/a", b"1")
    image = first.image()
    assert image == {"/d": None, "/d/a": b"1"}
    second = SimulatedFiles(image)
    second.open("/d/a").append(b"2")
    assert (read_whole(first, "/d/a"), read_whole(second, "/d/a"), image["/d/a"]) == (b"1", b"12", b"1")


def test_a_simulated_rename_stays_in_its_directory() -> None:
    files = SimulatedFiles({"/a": None, "/b": None, "/a/x": b""})
    _refused(errno.EXDEV, lambda: files.rename("/a/x", "/b/x"))


def test_a_recording_tells_changes_and_syncs_in_order() -> None:
    files = RecordingFiles(SimulatedFiles())
    files.make_dir("/d")
    files.make_dir("/d")
    write_whole(files, "/d/a", b"xy")
    read_whole(files, "/d/a")
    files.unlink("/d/a")
    assert files.operations == [
        DirMade("/d"),
        Opened("/d/a.tmp", 1, True),
        Truncated(1, 0),
        Written(1, 0, b"xy"),
        Synced(1),
        Renamed("/d/a.tmp", "/d/a"),
        DirSynced("/d"),
        Opened("/d/a", 2, False),
        Unlinked("/d/a"),
    ]
