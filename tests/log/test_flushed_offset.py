"""The note of how far a partition is on the disk."""

import pytest

from kohort.log.files import Files
from kohort.log.flushed_offset import NOTHING, FlushedOffset, LogEnd, read_flushed_offset
from kohort.log.simulated_files import SimulatedFiles

PATH = "/d/flushed-offset"


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles({"/d": None})


def spoil(files: Files, position: int) -> None:
    file = files.open(PATH)
    file.write_at(position, b"\xff")
    file.close()


def end(offset: int) -> LogEnd:
    return LogEnd(offset, 5, 100 * offset)


def test_without_a_file_nothing_is_known(files: SimulatedFiles) -> None:
    assert read_flushed_offset(files, PATH) == NOTHING
    assert not files.exists(PATH)


def test_the_last_note_counts(files: SimulatedFiles) -> None:
    note = FlushedOffset.open(files, PATH)
    for offset in (10, 20, 30):
        note.note(end(offset))
        assert read_flushed_offset(files, PATH) == end(offset)


def test_a_torn_note_leaves_the_one_before(files: SimulatedFiles) -> None:
    note = FlushedOffset.open(files, PATH)
    note.note(end(10))
    note.note(end(20))
    spoil(files, 3)
    assert read_flushed_offset(files, PATH) == end(10)
    again = FlushedOffset.open(files, PATH)
    again.note(end(25))
    assert read_flushed_offset(files, PATH) == end(25)


def test_two_torn_notes_leave_nothing(files: SimulatedFiles) -> None:
    note = FlushedOffset.open(files, PATH)
    note.note(end(10))
    note.note(end(20))
    spoil(files, 3)
    spoil(files, 512 + 35)
    assert read_flushed_offset(files, PATH) == NOTHING


def test_a_lowered_note_does_not_rise_again_from_the_other_slot(files: SimulatedFiles) -> None:
    note = FlushedOffset.open(files, PATH)
    note.note(end(10))
    note.note(end(20))
    note.lower(end(5))
    spoil(files, 3)
    assert read_flushed_offset(files, PATH) == end(5)


def test_lowering_to_more_than_was_noted_changes_nothing(files: SimulatedFiles) -> None:
    note = FlushedOffset.open(files, PATH)
    note.note(end(10))
    note.lower(end(20))
    assert note.end == end(10)
