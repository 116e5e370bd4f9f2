"""After a sync that failed the operating system shows what it will never write: a restart must not trust it."""

import pytest

from kohort.log.crash_images import Disk
from kohort.log.recorded_files import RecordingFile, RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles
from tests.log.log_bench import PATH, Bench, batch

_START: Image = {"/data": None, PATH: None}


def test_finding_what_a_failed_sync_left_is_safe_after_a_restart_without_a_power_cut() -> None:
    """Found by the simulation: the restart took it from the page cache, synced, and noted that it is safe."""
    memory = SimulatedFiles(_START)
    files = RecordingFiles(memory)
    bench = Bench(files)
    bench.append(batch("a"))
    bench.append(batch("b"), flush=False)
    file = bench.log.active_segment.file
    assert isinstance(file, RecordingFile)
    file.note_failed_sync()
    bench.log.abandon()
    bench.open()
    bench.log.abandon()
    disk = Disk(_START)
    for operation in files.operations:
        disk.apply(operation)
    for image in disk.images(1000):
        assert Bench(SimulatedFiles(image)).values() == ["a", "b"]


@pytest.mark.parametrize("values", [("a",), ("a", "b")])
def test_a_restart_changes_no_byte_of_a_sound_log(values: tuple[str, ...]) -> None:
    bench = Bench()
    for value in values:
        bench.append(batch(value), flush=False)
    before = bench.log.active_segment.file.read_at(0, 1000)
    bench.log.abandon()
    bench.open()
    assert bench.log.active_segment.file.read_at(0, 1000) == before
