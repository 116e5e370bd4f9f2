"""A cleaning in steps: what lies between them may be done in another thread, while the log goes on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog, StorageFailed
from kohort.log.cleaner import CleaningStopped
from kohort.log.faulty_files import FaultyFiles
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import read_batches
from tests.log.folding import plain
from tests.log.log_bench import read_all
from tests.log.test_cleaner import PARTITION, Bench


def put(key: bytes, value: bytes | None = b"1") -> bytes:
    return plain([(key, value)])


def full_bench(files: SimulatedFiles | None = None) -> Bench:
    """Three sealed segments in which one key is written again and again."""
    bench = Bench(files=files)
    for _ in range(3):
        bench.segment(put(b"a"), put(b"b"))
    return bench


def leftovers(bench: Bench) -> list[str]:
    return [name for name in bench.files.list_dir(bench.path) if name.endswith((".cleaned", ".swap", ".tmp"))]


def test_a_log_goes_on_between_the_steps() -> None:
    bench = full_bench()
    cleaning = bench.cleaner.begin(bench.log)
    bench.segment(put(b"a"), put(b"c"))
    steps = cleaning.steps()
    (step,) = steps
    bench.append(put(b"d"))
    bench.log.replace(step)
    bench.cleaner.note(cleaning)
    assert bench.bases() == [0, 6, 8]
    assert bench.kept() == [4, 5, 6, 7, 8]
    assert [record.offset for record in read_all(bench.log)] == bench.kept()
    assert leftovers(bench) == []


def test_readers_see_the_old_segments_until_the_new_one_is_put_in_their_place() -> None:
    """Their files have other names by then, and their indexes are gone."""
    bench = full_bench()
    bench.log.close()
    bench.start()  # nothing of the indexes is in memory
    before = [record.offset for record in read_all(bench.log, max_bytes=1)]
    (step,) = bench.cleaner.begin(bench.log).steps()
    for first in range(6):
        found = bench.log.read(first, 1)
        assert [record.offset for batch in read_batches(found.records) for record in batch.records] == [first]
    assert [record.offset for record in read_all(bench.log, max_bytes=1)] == before
    bench.log.replace(step)
    assert [record.offset for record in read_all(bench.log)] == [4, 5]


def test_a_swap_that_nobody_put_in_place_is_found_at_the_next_start() -> None:
    bench = full_bench()
    bench.append(put(b"z"))
    tuple(bench.cleaner.begin(bench.log).steps())
    bench.log.close()
    bench.start()
    assert bench.kept() == [4, 5, 6]
    assert leftovers(bench) == []


@pytest.mark.parametrize("is_late", [False, True])
def test_a_log_that_is_closed_meanwhile_is_not_cleaned(is_late: bool) -> None:
    bench = full_bench()
    cleaning = bench.cleaner.begin(bench.log)
    if is_late:
        (step,) = cleaning.steps()
        bench.log.abandon()
        assert bench.log.replace(step) is None
        bench.cleaner.note(cleaning)
    else:
        bench.log.abandon()
        with pytest.raises(StorageFailed, match="closed"):
            tuple(cleaning.steps())
    assert leftovers(bench) == []
    assert bench.cleaner.cleanable(bench.log).first_dirty_offset == 0


def test_a_partition_that_was_deleted_and_made_anew_is_not_touched() -> None:
    bench = full_bench()
    cleaning = bench.cleaner.begin(bench.log)
    bench.log.abandon()
    bench.files.rename(bench.path, f"{bench.path}.gone-delete")
    bench.files.make_dir(bench.path)
    bench.start()
    bench.segment(put(b"new"))
    with pytest.raises((StorageFailed, CorruptLog)):
        tuple(cleaning.steps())
    assert leftovers(bench) == []
    assert bench.kept() == [0]


def test_a_cleaning_that_is_stopped_leaves_the_log_as_it_was() -> None:
    bench = full_bench()
    cleaning = bench.cleaner.begin(bench.log)
    cleaning.stop()
    with pytest.raises(CleaningStopped):
        tuple(cleaning.steps())
    assert leftovers(bench) == []
    assert bench.kept() == list(range(6))
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [4, 5]


def test_a_stop_between_two_steps_keeps_what_is_in_place() -> None:
    bench = Bench()
    value = b"x" * 3_000
    for _ in range(4):
        bench.segment(put(b"a", value), put(b"b", value))
    before = bench.state()
    cleaning = bench.cleaner.begin(bench.log)
    steps = cleaning.steps()
    bench.log.replace(next(steps))
    cleaning.stop()
    with pytest.raises(CleaningStopped):
        next(steps)
    assert bench.kept() == [2, 3, 4, 5, 6, 7]
    assert bench.state() == before
    assert leftovers(bench) == []


class Gate(FaultyFiles):
    """Files that stop whoever renames a `.cleaned` file, until they are told to go on."""

    def __init__(self) -> None:
        super().__init__(SimulatedFiles({"/data": None}))
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        if name == "rename" and path.endswith(".cleaned"):
            self.is_reached.set()
            assert self.may_go_on.wait(30)
        with super().call(name, path):
            yield


def test_appends_do_not_wait_for_a_swap_and_a_close_does() -> None:
    files = Gate()
    bench = full_bench(files)  # type: ignore[arg-type] # a disk all the same
    happened: list[str] = []

    def clean() -> None:
        tuple(bench.cleaner.begin(bench.log).steps())
        happened.append("swapped")

    def close() -> None:
        bench.log.close()
        happened.append("closed")

    cleaner, closer = threading.Thread(target=clean), threading.Thread(target=close)
    cleaner.start()
    assert files.is_reached.wait(30)
    bench.append(put(b"c"))  # and flushes it
    bench.log.roll()
    assert [record.offset for record in read_all(bench.log)] == list(range(7))
    closer.start()
    files.may_go_on.set()
    cleaner.join(30)
    closer.join(30)
    assert happened == ["swapped", "closed"]
    bench.start()
    assert bench.kept() == [4, 5, 6]


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=4, max_size=30),
    actions=st.lists(st.sampled_from(["append", "roll", "read", "flush"]), max_size=12),
)
def test_whatever_the_owner_does_meanwhile_nothing_is_lost(keys: list[bytes], actions: list[str]) -> None:
    bench = Bench()
    for number, key in enumerate(keys):
        bench.append(put(key, b"%d" % number))
        if number % 3 == 2:
            bench.log.roll()
    latest = {key: number for number, key in enumerate(keys)}
    cleaning = bench.cleaner.begin(bench.log)
    ended = threading.Event()
    taken = []

    def work() -> None:
        taken.extend(cleaning.steps())
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    for action in actions:
        if action == "append":
            bench.append(put(b"a", b"later"))
            latest[b"a"] = bench.log.log_end_offset - 1
        elif action == "roll":
            bench.log.roll()
        elif action == "read":
            assert {record.key for record in read_all(bench.log)} >= set(latest)
        else:
            bench.log.flush()
    thread.join(30)
    assert ended.is_set()
    assert len(taken) <= 1  # all of it fits into one segment
    for step in taken:
        bench.log.replace(step)
    bench.cleaner.note(cleaning)
    seen = {record.key: record.offset for record in read_all(bench.log)}
    assert seen == latest


def test_the_note_of_a_partition_is_forgotten_with_it() -> None:
    bench = full_bench()
    bench.cleaner.clean(bench.log)
    assert bench.cleaner.cleanable(bench.log).first_dirty_offset == 6
    bench.cleaner.forget([PARTITION])
    assert bench.cleaner.cleanable(bench.log).first_dirty_offset == 0
