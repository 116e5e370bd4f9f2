"""What becomes of a log when its disk fails."""

import contextlib
import errno

import pytest

from kohort.errors import StorageFailed
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import Bench, batch


def faulty_bench() -> tuple[Bench, FaultyFiles]:
    files = FaultyFiles(SimulatedFiles({"/data": None}))
    bench = Bench(files)
    bench.append(batch("a"))
    return bench, files


def fail_next(files: FaultyFiles, number: int, **fault: int) -> None:
    files._fault = Fault(call=files.calls, number=number, **fault)


def test_a_full_disk_refuses_the_append_and_leaves_a_whole_log() -> None:
    bench, files = faulty_bench()
    fail_next(files, errno.ENOSPC, short_write=30)
    with pytest.raises(StorageFailed, match="No space"):
        bench.log.append(batch("b"))
    assert bench.values() == ["a"]
    assert bench.log.log_end_offset == 1
    bench.append(batch("c"))
    bench.open()
    assert bench.values() == ["a", "c"]


def test_a_full_disk_leaves_no_trace_of_the_producer() -> None:
    bench, files = faulty_bench()
    sent = batch("b", producer=1, epoch=0, sequence=0)
    fail_next(files, errno.ENOSPC, short_write=30)
    with pytest.raises(StorageFailed):
        bench.log.append(sent)
    assert not bench.log.append(sent).is_duplicate


def test_a_failed_write_ends_the_writing_but_not_the_reading() -> None:
    bench, files = faulty_bench()
    fail_next(files, errno.EIO)
    with pytest.raises(StorageFailed, match="Input/output"):
        bench.log.append(batch("b"))
    for call in (lambda: bench.log.append(batch("c")), bench.log.flush, bench.log.roll, bench.log.tick):
        with pytest.raises(StorageFailed, match="Input/output"):
            call()
    assert bench.values() == ["a"]


def test_a_failed_sync_is_not_tried_again() -> None:
    bench, files = faulty_bench()
    bench.append(batch("b"), flush=False)
    fail_next(files, errno.EIO)
    with pytest.raises(StorageFailed):
        bench.log.flush()
    calls = files.calls
    with pytest.raises(StorageFailed):
        bench.log.flush()
    assert files.calls == calls
    assert bench.log.high_watermark == 1


def test_a_failed_log_is_closed_without_touching_the_disk() -> None:
    bench, files = faulty_bench()
    bench.append(batch("b"), flush=False)
    fail_next(files, errno.EIO)
    with pytest.raises(StorageFailed):
        bench.log.flush()
    calls = files.calls
    bench.log.close()
    assert files.calls == calls


def test_a_fault_at_any_call_is_told_and_a_new_start_finds_what_was_acknowledged() -> None:
    """Write, roll, delete and close with a fault at the n-th call, for every n."""

    def work(files: FaultyFiles) -> list[str]:
        acknowledged: list[str] = []
        bench = Bench(files, segment_bytes=3 * len(batch("a")))
        for number in range(8):
            bench.append(batch(str(number)))
            acknowledged.append(str(number))
        bench.log.close()
        return acknowledged

    total = FaultyFiles(SimulatedFiles({"/data": None}))
    everything = work(total)
    for call in range(total.calls):
        disk = SimulatedFiles({"/data": None})
        acknowledged: list[str] = []
        try:
            bench = Bench(
                FaultyFiles(disk, Fault(call=call, number=errno.EIO, persistent=True)),
                segment_bytes=3 * len(batch("a")),
            )
            for number in range(8):
                bench.append(batch(str(number)))
                acknowledged.append(str(number))
            bench.log.close()
        except (StorageFailed, OSError):
            found = Bench(disk).values()
            assert found[: len(acknowledged)] == acknowledged
            assert found == everything[: len(found)]
        else:
            pytest.fail(f"the fault at call {call} went unnoticed")


def test_a_finding_a_disk_that_is_full_when_a_segment_has_to_begin_refuses_only_until_there_is_room() -> None:
    """The log could not be written to any more until the next start."""
    bench, files = faulty_bench()
    calls = files.calls
    bench.log.roll()
    for call in range(files.calls - calls):
        bench, files = faulty_bench()
        files._fault = Fault(call=files.calls + call, number=errno.ENOSPC)
        with contextlib.suppress(StorageFailed):
            bench.log.roll()
        (failed,) = files.failed
        if bench.log.failure is None:
            bench.append(batch("b"))
            bench.log.roll()
            bench.append(batch("c"))
            expected = ["a", "b", "c"]
        else:
            expected = ["a"]
            assert not failed.startswith(("append", "write_at", "open")), "what needs room may be tried again"
        bench.open()
        assert bench.values() == expected, failed


def test_a_finding_a_disk_that_is_full_when_a_leader_begins_refuses_only_until_there_is_room() -> None:
    """The first append of each start notes its epoch: on a full disk no partition could be written to any more."""
    bench, files = faulty_bench()
    fail_next(files, errno.ENOSPC)
    with pytest.raises(StorageFailed, match="No space"):
        bench.log.append(batch("b"), leader_epoch=1)
    bench.log.append(batch("c"), leader_epoch=1)
    bench.log.flush()
    bench.open()
    assert bench.values() == ["a", "c"]
    assert bench.log.leader_epochs.latest == 1


def test_a_finding_a_full_disk_need_not_take_the_note_of_what_was_synced() -> None:
    """It ended the broker, although the batches were safe."""
    bench, files = faulty_bench()
    bench.append(batch("b"), flush=False)
    behind_the_sync = 1
    files._fault = Fault(call=files.calls + behind_the_sync, number=errno.ENOSPC)
    assert bench.log.flush() == 2
    assert [failed.partition(" ")[0] for failed in files.failed] == ["write_at"]
    bench.open()
    assert bench.values() == ["a", "b"]
