"""The images of a crash are what a file system may leave, no less and no more."""

import errno

import pytest

from kohort.log.crash_images import Disk, crash_points
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.files import read_whole, write_whole
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles

PLENTY = 100_000


def _recorded(image: Image | None = None) -> tuple[Image, RecordingFiles]:
    start = image if image is not None else {"/d": None}
    return start, RecordingFiles(SimulatedFiles(start))


def _images(start: Image, files: RecordingFiles, *, every_byte: bool = False) -> list[Image]:
    disk = Disk(start)
    for operation in files.operations:
        disk.apply(operation)
    return list(disk.images(PLENTY, every_byte=every_byte))


def _contents(images: list[Image], path: str) -> set[bytes | None]:
    return {image.get(path) for image in images}


def test_what_was_synced_with_its_name_stays() -> None:
    start, files = _recorded()
    write_whole(files, "/d/a", b"12")
    assert _images(start, files) == [{"/d": None, "/d/a": b"12"}]


def test_the_sync_of_a_file_does_not_keep_its_name() -> None:
    start, files = _recorded()
    file = files.open("/d/a", create=True)
    file.append(b"12")
    file.sync()
    assert _images(start, files) == [{"/d": None}, {"/d": None, "/d/a": b"12"}]


def test_the_sync_of_a_directory_does_not_keep_the_contents_in_it() -> None:
    start, files = _recorded()
    files.open("/d/a", create=True).append(b"12")
    files.sync_dir("/d")
    found = _contents(_images(start, files), "/d/a")
    assert {b"", b"12", b"1", b"\0\0", b"1\0"} <= found
    assert None not in found


def test_a_directory_that_was_not_synced_goes_with_all_that_is_in_it() -> None:
    start, files = _recorded({})
    files.make_dir("/e")
    write_whole(files, "/e/a", b"12")
    assert _images(start, files) == [{}, {"/e": None, "/e/a": b"12"}]


def test_of_two_writes_either_may_be_lost_and_the_gap_holds_anything() -> None:
    start, files = _recorded({"/a": b"__"})
    file = files.open("/a")
    file.append(b"12")
    file.append(b"34")
    found = _contents(_images(start, files), "/a")
    assert {b"__", b"__12", b"__1234", b"__\0\x0034", b"____34", b"__123", b"__1", b"__12\0\0"} <= found
    assert all(content is not None and content.startswith(b"__") for content in found)


def test_every_byte_is_a_place_to_tear_a_write() -> None:
    start, files = _recorded({"/a": b""})
    data = bytes(range(1, 201))
    files.open("/a").append(data)
    found = _contents(_images(start, files, every_byte=True), "/a")
    assert {data[:cut] for cut in range(201)} <= found


def test_a_write_may_arrive_without_its_first_sectors() -> None:
    start, files = _recorded({"/a": b""})
    files.open("/a").append(b"x" * 1300)
    found = _contents(_images(start, files), "/a")
    assert bytes(512) + b"x" * 788 in found
    assert b"x" * 1024 in found


def test_an_unsynced_truncation_happened_or_not() -> None:
    start, files = _recorded({"/a": b"12345"})
    files.open("/a").truncate(2)
    assert _contents(_images(start, files), "/a") == {b"12", b"12345"}


def test_a_rename_is_atomic_and_needs_its_source() -> None:
    start, files = _recorded({"/a": b"old"})
    file = files.open("/b", create=True)
    file.append(b"new")
    file.sync()
    files.rename("/b", "/a")
    images = _images(start, files)
    assert images == [{"/a": b"old"}, {"/a": b"new"}, {"/a": b"old", "/b": b"new"}]


def test_names_change_in_any_subset_that_is_possible() -> None:
    start, files = _recorded({"/a": b"1", "/b": b"2"})
    files.rename("/a", "/a.deleted")
    files.rename("/b", "/a")
    files.unlink("/a.deleted")
    found = [sorted(image.items()) for image in _images(start, files)]
    assert sorted(found) == sorted(
        [
            [("/a", b"1"), ("/b", b"2")],
            [("/a.deleted", b"1"), ("/b", b"2")],
            [("/a", b"2")],
            [("/a", b"2"), ("/a.deleted", b"1")],
            [("/b", b"2")],
        ]
    )


def test_a_new_file_does_not_take_the_place_of_one_that_is_still_there() -> None:
    start, files = _recorded({"/a": b"1"})
    files.unlink("/a")
    files.open("/a", create=True)
    assert _images(start, files) == [{"/a": b"1"}, {"/a": b""}, {}]


def test_the_limit_is_kept_and_images_do_not_repeat() -> None:
    start, files = _recorded()
    for name in "abcdefgh":
        files.open(f"/d/{name}", create=True).append(b"x" * 700)
    disk = Disk(start)
    for operation in files.operations:
        disk.apply(operation)
    images = list(disk.images(50))
    assert len(images) == 50
    assert len({tuple(image.items()) for image in images}) == 50
    assert images == list(disk.images(50))


def test_crash_points_stand_before_the_first_operation_and_after_each() -> None:
    start, files = _recorded()
    write_whole(files, "/d/a", b"12")
    counts = [len(list(disk.images(PLENTY))) for disk in crash_points(start, files.operations)]
    assert counts[0] == counts[-1] == 1
    assert len(counts) == len(files.operations) + 1


def test_the_chosen_call_fails_once() -> None:
    files = FaultyFiles(SimulatedFiles({"/a": b""}), Fault(call=1, number=errno.EIO))
    file = files.open("/a")
    with pytest.raises(OSError, match="error") as caught:
        file.append(b"1")
    assert caught.value.errno == errno.EIO
    file.append(b"2")
    assert (file.read_at(0, 9), files.calls, files.failed) == (b"2", 4, ["append /a"])


def test_a_full_disk_takes_some_bytes_and_stays_full() -> None:
    inner = SimulatedFiles({"/a": b""})
    files = FaultyFiles(inner, Fault(call=1, number=errno.ENOSPC, persistent=True, short_write=2))
    file = files.open("/a")
    for call in (lambda: file.append(b"123"), file.sync, lambda: files.unlink("/a")):
        with pytest.raises(OSError, match="No space"):
            call()
    assert read_whole(inner, "/a") == b"12"


def test_a_sync_that_succeeds_after_one_that_failed_makes_only_newer_writes_safe() -> None:
    start, files = _recorded()
    write_whole(files, "/d/a", b"")
    file = files.open("/d/a")
    file.append(b"12")
    file.note_failed_sync()
    file.append(b"34")
    file.sync()
    found = _contents(_images(start, files), "/d/a")
    assert b"1234" in found
    assert b"\0\x0034" in found
    assert all(content is not None and content.endswith(b"34") for content in found)


def test_what_is_written_once_more_after_a_failed_sync_can_be_made_safe() -> None:
    start, files = _recorded()
    write_whole(files, "/d/a", b"")
    file = files.open("/d/a")
    file.append(b"12")
    file.note_failed_sync()
    file.write_at(0, b"12")
    file.sync()
    assert _contents(_images(start, files), "/d/a") == {b"12"}
