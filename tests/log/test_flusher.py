"""Group commit."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Barrier
from typing import Any

import pytest

from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.flusher import Flusher, FlusherThreads
from kohort.log.recorded_files import RecordingFiles, Synced
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import Bench, batch


class HookedFile:
    """The file of an active segment, which tells somebody before each of its syncs."""

    def __init__(self, bench: Bench, before_sync: Callable[[], None]) -> None:
        self._inner = bench.log.active_segment.file
        self._before_sync = before_sync
        bench.log.active_segment.file = self

    def sync(self) -> None:
        self._before_sync()
        self._inner.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def fail() -> None:
    raise OSError(5, "Input/output error")


def syncs(files: RecordingFiles) -> int:
    return sum(isinstance(operation, Synced) for operation in files.operations)


def always(bench: Bench) -> Flusher:
    return Flusher(FlushMode.ALWAYS, bench.clock)


def append(bench: Bench) -> int:
    return bench.log.append(batch("a")).next_offset


def test_one_sync_serves_all_who_wait() -> None:
    files = RecordingFiles(SimulatedFiles({"/data": None}))
    bench = Bench(files)
    flusher = always(bench)
    futures = [flusher.durable(bench.log, append(bench)) for _ in range(20)]
    before = syncs(files)
    assert not any(future.done() for future in futures)
    assert flusher.run_once() == 20
    assert all(future.result(0) is None for future in futures)
    assert syncs(files) == before + 1
    assert flusher.run_once() == 0
    assert syncs(files) == before + 1


def test_every_dirty_log_is_synced_once() -> None:
    files = RecordingFiles(SimulatedFiles({"/data": None}))
    benches = [Bench(files, f"/data/orders-{n}") for n in range(3)]
    flusher = always(benches[0])
    futures = [flusher.durable(bench.log, append(bench)) for bench in benches * 2]
    before = syncs(files)
    assert flusher.run_once() == 6
    assert all(future.done() for future in futures)
    assert syncs(files) == before + 3


def test_what_is_durable_already_need_not_wait() -> None:
    bench = Bench()
    flusher = always(bench)
    offset = append(bench)
    bench.log.flush()
    assert flusher.durable(bench.log, offset).done()


def test_an_append_during_a_sync_waits_for_the_next_one() -> None:
    bench = Bench()
    flusher = always(bench)
    first = flusher.durable(bench.log, append(bench))
    late = []

    def append_meanwhile() -> None:
        if not late:
            late.append(flusher.durable(bench.log, append(bench)))

    HookedFile(bench, append_meanwhile)
    assert flusher.run_once() == 1
    assert first.done()
    assert not late[0].done()
    assert bench.log.high_watermark == 1
    assert flusher.run_once() == 1
    assert late[0].done()


def test_a_sync_that_fails_fails_everybody_and_is_never_tried_again() -> None:
    benches = [Bench(path=f"/data/orders-{n}") for n in range(2)]
    flusher = always(benches[0])
    futures = [flusher.durable(bench.log, append(bench)) for bench in benches]
    attempts = []

    def fail_once() -> None:
        attempts.append(None)
        if len(attempts) == 1:
            fail()

    for bench in benches:
        HookedFile(bench, fail_once)
    assert flusher.run_once() == 0
    for future in futures:
        with pytest.raises(StorageFailed, match="Input/output"):
            future.result(0)
    with pytest.raises(StorageFailed):
        flusher.durable(benches[1].log, 1).result(0)
    assert flusher.run_once() == 0
    with pytest.raises(StorageFailed):
        benches[0].log.flush()
    with pytest.raises(StorageFailed):
        append(benches[0])
    assert len(attempts) == 1
    assert benches[0].log.high_watermark == 0


def test_who_waits_for_a_log_that_is_closed_meanwhile_is_told() -> None:
    benches = [Bench(path=f"/data/orders-{n}") for n in range(2)]
    flusher = always(benches[0])
    deleted, closed = (flusher.durable(bench.log, append(bench)) for bench in benches)
    benches[0].log.abandon()
    benches[1].log.close()
    assert flusher.run_once() == 1
    assert closed.result(0) is None
    with pytest.raises(StorageFailed, match="closed"):
        deleted.result(0)
    assert flusher.failure is None


def test_in_interval_mode_nobody_waits_and_dirty_logs_are_synced_now_and_then() -> None:
    bench = Bench(flush_mode=FlushMode.INTERVAL)
    flusher = Flusher(FlushMode.INTERVAL, bench.clock, interval_ms=1000)
    assert flusher.durable(bench.log, append(bench)).done()
    bench.clock.advance(999)
    flusher.run_once()
    assert bench.log.recovery_point == 0
    bench.clock.advance(1)
    flusher.run_once()
    assert bench.log.recovery_point == 1


def test_in_os_mode_nothing_is_synced() -> None:
    bench = Bench(flush_mode=FlushMode.OS)
    flusher = Flusher(FlushMode.OS, bench.clock)
    assert flusher.durable(bench.log, append(bench)).done()
    bench.clock.advance(1 << 40)
    flusher.run_once()
    assert bench.log.recovery_point == 0


def test_a_future_cannot_be_cancelled_halfway() -> None:
    bench = Bench()
    flusher = always(bench)
    future = flusher.durable(bench.log, append(bench))
    assert not future.cancel()
    assert flusher.run_once() == 1


def test_the_thread_serves_whoever_waits() -> None:
    bench = Bench()
    flusher = always(bench)
    thread = FlusherThreads(flusher, on_failure=pytest.fail)
    for _ in range(50):
        flusher.durable(bench.log, append(bench)).result(10)
        assert bench.log.high_watermark == bench.log.log_end_offset
    waiting = flusher.durable(bench.log, append(bench))
    thread.close()
    assert waiting.result(10) is None


def test_the_thread_ends_when_the_disk_fails_and_says_so() -> None:
    bench = Bench()
    flusher = always(bench)
    offset = append(bench)
    HookedFile(bench, fail)
    told: SimpleQueue[StorageFailed] = SimpleQueue()
    thread = FlusherThreads(flusher, on_failure=told.put)
    with pytest.raises(StorageFailed):
        flusher.durable(bench.log, offset).result(10)
    assert told.get(timeout=10) is flusher.failure
    thread.close()


def test_nobody_is_told_before_those_who_came_earlier() -> None:
    bench = Bench()
    flusher = always(bench)
    told: list[str] = []
    flusher.then(bench.log, append(bench), lambda _: told.append("first"))
    second = append(bench)
    bench.log.flush()
    flusher.then(bench.log, second, lambda _: told.append("second"))
    assert told == []
    flusher.run_once()
    assert told == ["first", "second"]


def test_several_threads_sync_several_logs_at_a_time_but_each_log_once() -> None:
    benches = [Bench(path=f"/data/orders-{n}") for n in range(3)]
    flusher = always(benches[0])
    at_the_disk = Barrier(3)
    for bench in benches:
        HookedFile(bench, lambda: at_the_disk.wait(10) and None)
    threads = FlusherThreads(flusher, on_failure=pytest.fail, count=3)
    for future in [flusher.durable(bench.log, append(bench)) for bench in benches]:
        assert future.result(10) is None
    threads.close()


def test_all_threads_end_when_the_disk_fails_and_it_is_said_once() -> None:
    benches = [Bench(path=f"/data/orders-{n}") for n in range(4)]
    flusher = always(benches[0])
    for bench in benches:
        HookedFile(bench, fail)
    told: SimpleQueue[StorageFailed] = SimpleQueue()
    threads = FlusherThreads(flusher, on_failure=told.put, count=4)
    futures = [flusher.durable(bench.log, append(bench)) for bench in benches]
    for future in futures:
        with pytest.raises(StorageFailed):
            future.result(10)
    threads.close()
    assert told.get(timeout=10) is flusher.failure
    assert told.empty()
