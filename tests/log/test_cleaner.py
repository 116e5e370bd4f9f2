"""The cleaner at work on whole logs."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.errors import CorruptLog
from kohort.log.checkpoints import CLEANER_OFFSET, read_offsets
from kohort.log.cleaner import Cleaned, Cleaner
from kohort.log.files import read_whole
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log
from kohort.log.recovery import open_log
from kohort.log.replaying import replay_log
from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import RecordBatch, read_batches
from kohort.records.compression import Codec
from tests.log.folding import TIME, Entry, State, fold_bytes, marker, plain, transactional

DAY = 86_400_000
PARTITION = TopicPartition("offsets", 0)
COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, delete_retention_ms=DAY, segment_bytes=10_000
)


class Bench:
    """A log with its cleaner, on a disk in memory."""

    def __init__(
        self,
        config: LogConfig = COMPACTED,
        *,
        memory: int = 1 << 20,
        files: SimulatedFiles | None = None,
        partition: TopicPartition = PARTITION,
    ) -> None:
        self.files = files or SimulatedFiles({"/data": None})
        self.path = f"/data/{partition}"
        self.files.make_dir(self.path)
        self.clock = VirtualClock(TIME)
        self.config = config
        self.memory = memory
        self.start()

    def start(self) -> None:
        self.log: Log = open_log(self.files, self.path, self.config, self.clock, clean=False)
        self.cleaner = Cleaner(self.files, "/data", self.clock, dedupe_buffer_size=self.memory)

    def append(self, *batches: bytes) -> None:
        for batch in batches:
            self.log.append(batch, origin=AppendOrigin.COORDINATOR)
        self.log.flush()

    def segment(self, *batches: bytes) -> None:
        """A sealed segment of these batches."""
        self.append(*batches)
        self.log.roll()

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments]

    def batches(self) -> list[RecordBatch]:
        return [batch for segment in self.log.segments for batch in read_batches(read_whole(self.files, segment.path))]

    def kept(self) -> list[int]:
        return [record.offset for batch in self.batches() for record in batch.records]

    def state(self) -> State:
        return fold_bytes(*(read_whole(self.files, segment.path) for segment in self.log.segments))


def clean_filthiest(cleaner: Cleaner, logs: list[Log]) -> Cleaned | None:
    """What housekeeping does, again and again."""
    log = cleaner.filthiest(logs)
    return None if log is None else cleaner.clean(log)


def _put(key: bytes, value: bytes | None = b"1") -> bytes:
    return plain([(key, value)])


def test_old_segments_become_one_and_the_active_one_is_left_alone() -> None:
    bench = Bench()
    bench.segment(_put(b"a"), _put(b"b"))
    bench.segment(_put(b"a"), _put(b"c"))
    bench.append(_put(b"b"), _put(b"c"))
    before = bench.state()
    cleaned = bench.cleaner.clean(bench.log)
    assert (bench.bases(), bench.kept()) == ([0, 4], [1, 2, 3, 4, 5])
    assert cleaned.first_dirty_offset == 4
    assert cleaned.bytes_written < cleaned.bytes_read
    assert bench.state() == before


def test_a_cleaned_segment_stays_within_segment_bytes() -> None:
    bench = Bench(replace(COMPACTED, segment_bytes=220))
    for number in range(12):
        bench.append(_put(b"key-%d" % number))
    bench.log.roll()
    bench.cleaner.clean(bench.log)
    assert len(bench.kept()) == 12
    assert len(bench.log.segments) > 2
    assert all(segment.size <= 220 for segment in bench.log.segments)


def test_nothing_beyond_the_last_stable_offset_is_cleaned() -> None:
    bench = Bench()
    bench.segment(_put(b"a"), _put(b"a"))
    bench.segment(_put(b"a"), transactional(7, [(b"b", b"1")]))
    bench.segment(_put(b"a"))
    bench.append(_put(b"a"))
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [1, 2, 3, 4, 5]
    bench.append(marker(7, commit=True))
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [3, 4, 5, 6]


def test_nothing_that_is_not_on_the_disk_is_cleaned() -> None:
    bench = Bench()
    bench.segment(_put(b"a"))
    bench.segment(transactional(7, [(b"a", b"2")]))
    bench.log.append(marker(7, commit=True), origin=AppendOrigin.COORDINATOR)
    assert bench.cleaner.cleanable(bench.log).end_offset == 1
    bench.log.flush()
    assert bench.cleaner.cleanable(bench.log).end_offset == 2


def test_the_young_wait_for_the_compaction_lag() -> None:
    bench = Bench(replace(COMPACTED, min_compaction_lag_ms=1000))
    bench.segment(plain([(b"a", b"1")], timestamp=TIME))
    bench.segment(plain([(b"a", b"2")], timestamp=TIME + 500))
    bench.clock.advance(999)
    assert clean_filthiest(bench.cleaner, [bench.log]) is None
    bench.clock.advance(1)
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [0, 1]
    bench.clock.advance(500)
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [1]


def test_a_log_is_cleaned_when_its_dirty_share_is_worth_it() -> None:
    bench = Bench(replace(COMPACTED, min_cleanable_dirty_ratio=0.5))
    for key in (b"a", b"b", b"c"):
        bench.segment(_put(key))
    assert clean_filthiest(bench.cleaner, [bench.log]) is not None
    assert clean_filthiest(bench.cleaner, [bench.log]) is None
    for key in (b"d", b"e", b"f"):
        bench.segment(_put(key))
    assert bench.cleaner.cleanable(bench.log).dirty_ratio == 0.5
    assert clean_filthiest(bench.cleaner, [bench.log]) is None
    bench.segment(_put(b"a"))
    assert clean_filthiest(bench.cleaner, [bench.log]) is not None


def test_only_compacted_logs_are_cleaned_and_the_filthiest_first() -> None:
    deleting = replace(COMPACTED, cleanup_policy=frozenset({"delete"}))
    files = SimulatedFiles({"/data": None})
    plain_log, little, much = (
        Bench(config, files=files, partition=TopicPartition("offsets", number))
        for number, config in enumerate([deleting, COMPACTED, COMPACTED])
    )
    for bench in (plain_log, little, much):
        bench.segment(_put(b"a"), _put(b"a"))
    cleaner = Cleaner(files, "/data", VirtualClock(TIME))
    cleaner.clean(little.log)
    little.segment(_put(b"a"))
    logs = [bench.log for bench in (plain_log, little, much)]
    clean_filthiest(cleaner, logs)
    assert [len(bench.kept()) for bench in (plain_log, little, much)] == [2, 2, 1]
    clean_filthiest(cleaner, logs)
    assert [len(bench.kept()) for bench in (plain_log, little, much)] == [2, 1, 1]
    assert clean_filthiest(cleaner, logs) is None


def test_the_memory_bounds_how_far_one_cleaning_goes() -> None:
    bench = Bench(memory=400)
    bench.segment(_put(b"a"), _put(b"b"), _put(b"a"), _put(b"c"), _put(b"a"), _put(b"b"), _put(b"c"))
    before = bench.state()
    assert bench.cleaner.clean(bench.log).first_dirty_offset == 3
    assert bench.kept() == [1, 2, 3, 4, 5, 6]
    assert bench.cleaner.clean(bench.log).first_dirty_offset == 5
    assert bench.cleaner.clean(bench.log).first_dirty_offset == 7
    assert bench.kept() == [4, 5, 6]
    assert bench.state() == before


def test_the_first_dirty_offset_outlives_a_restart() -> None:
    bench = Bench()
    bench.segment(_put(b"a"))
    bench.cleaner.clean(bench.log)
    assert read_offsets(bench.files, f"/data/{CLEANER_OFFSET}") == {PARTITION: 1}
    bench.log.close()
    bench.start()
    assert bench.cleaner.cleanable(bench.log).first_dirty_offset == 1
    bench.cleaner.forget([PARTITION])
    assert read_offsets(bench.files, f"/data/{CLEANER_OFFSET}") == {}


@pytest.mark.parametrize("content", [b"", b"junk", b"0\n1\noffsets 0 77\n"])
def test_a_first_dirty_offset_that_cannot_be_is_forgotten(content: bytes) -> None:
    bench = Bench()
    bench.files.open(f"/data/{CLEANER_OFFSET}", create=True).append(content)
    bench.start()
    bench.segment(_put(b"a"))
    bench.segment(_put(b"a"))
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [1]


def test_a_stale_first_dirty_offset_does_not_bring_anything_back() -> None:
    """A log that was deleted and made again may be less clean than the checkpoint says."""
    bench = Bench()
    bench.files.open(f"/data/{CLEANER_OFFSET}", create=True).append(b"0\n1\noffsets 0 2\n")
    bench.start()
    bench.segment(_put(b"a"), _put(b"a", None), _put(b"b"))
    for _ in range(3):
        bench.cleaner.clean(bench.log)
        bench.clock.advance(2 * DAY)
    assert set(bench.state().values) == {b"b"}


def test_a_damaged_segment_is_not_written_again() -> None:
    bench = Bench()
    bench.segment(_put(b"a"), _put(b"b"))
    bench.segment(_put(b"a"))
    first = bench.log.segments[0]
    first.file.write_at(first.size - 2, b"!")
    before = bench.files.image()
    with pytest.raises(CorruptLog):
        bench.cleaner.clean(bench.log)
    assert bench.files.image() == before


def test_a_log_that_is_clean_already_is_not_written_again() -> None:
    bench = Bench()
    bench.segment(_put(b"a"), _put(b"b"))
    bench.cleaner.clean(bench.log)
    segments = bench.log.segments
    bench.cleaner.clean(bench.log)
    assert bench.log.segments == segments


def test_tombstones_and_markers_go_in_their_time() -> None:
    bench = Bench()
    bench.segment(_put(b"a"), transactional(7, [(b"b", b"1")]), marker(7, commit=False), _put(b"a", None))
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [2, 3]
    bench.clock.advance(DAY)
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [2], "the tombstone has gone; the marker has its horizon now"
    bench.clock.advance(DAY)
    bench.cleaner.clean(bench.log)
    assert bench.kept() == [2], "the producer is alive, and its last batch with the marker behind it"


def test_the_last_batch_of_a_living_producer_outlives_its_records() -> None:
    bench = Bench(replace(COMPACTED, producer_id_expiration_ms=10 * DAY))
    bench.segment(transactional(7, [(b"a", b"1")]), marker(7, commit=True), _put(b"a"))
    for _ in range(3):
        bench.cleaner.clean(bench.log)
        bench.clock.advance(DAY)
    assert [(batch.header.producer_id, len(batch.records)) for batch in bench.batches()] == [(7, 0), (7, 1), (-1, 1)]
    bench.clock.advance(10 * DAY)
    bench.log.tick()
    for _ in range(3):
        bench.cleaner.clean(bench.log)
        bench.clock.advance(DAY)
    assert [batch.header.producer_id for batch in bench.batches()] == [-1]


def test_a_segment_of_which_nothing_is_left_leaves_a_log_that_goes_on() -> None:
    bench = Bench()
    bench.segment(plain([(None, b"1")]))
    bench.append(_put(b"a"))
    bench.cleaner.clean(bench.log)
    bench.log.close()
    bench.start()
    bench.append(_put(b"b"))
    assert (bench.kept(), bench.log.log_end_offset) == ([1, 2], 3)


_ENTRIES = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"\0\xff", None]), st.sampled_from([b"1", b"2", None])),
    min_size=1,
    max_size=3,
)
_PRODUCERS = st.integers(7, 8)
_CODECS = st.sampled_from([Codec.NONE, Codec.LZ4])


def _whole_transaction(producer_id: int, entries: list[Entry], commit: bool) -> list[bytes]:
    return [transactional(producer_id, entries), marker(producer_id, commit=commit)]


_WRITES = st.one_of(
    st.builds(lambda entries, codec: [plain(entries, codec=codec)], _ENTRIES, _CODECS),
    st.builds(lambda pid, entries: [transactional(pid, entries)], _PRODUCERS, _ENTRIES),
    st.builds(lambda pid, commit: [marker(pid, commit=commit)], _PRODUCERS, st.booleans()),
    st.builds(_whole_transaction, _PRODUCERS, _ENTRIES, st.booleans()),
)
_DEEDS: dict[str, Callable[[Bench], object]] = {
    "roll": lambda bench: bench.log.roll(),
    "clean": lambda bench: bench.cleaner.clean(bench.log),
    "a day": lambda bench: bench.clock.advance(DAY),
    "tick": lambda bench: bench.log.tick(),
    "restart": lambda bench: (bench.log.close(), bench.start()),
    "kill": lambda bench: bench.start(),
}
_STEPS = st.lists(
    st.one_of(_WRITES, _WRITES, st.sampled_from(["roll", "clean"]), st.sampled_from(list(_DEEDS))), max_size=40
)


@settings(max_examples=300, deadline=None)
@given(
    _STEPS,
    st.sampled_from([300, 600, 10_000]),
    st.sampled_from([400, 1 << 20]),
    st.sampled_from([DAY, 10 * DAY, 1000 * DAY]),
)
def test_cleaning_at_any_moment_changes_nothing_for_a_reader(
    steps: list[list[bytes] | str], segment_bytes: int, memory: int, expiration: int
) -> None:
    config = replace(COMPACTED, segment_bytes=segment_bytes, producer_id_expiration_ms=expiration)
    bench = Bench(config, memory=memory)
    written: list[bytes] = []
    offsets = itertools.count()
    for step in steps:
        if isinstance(step, str):
            _DEEDS[step](bench)
        else:
            bench.append(*step)
            written += [_numbered(batch, offsets) for batch in step]
        assert bench.state() == fold_bytes(*written)


def _numbered(data: bytes, offsets: "itertools.count[int]") -> bytes:
    [batch] = read_batches(data)
    first = next(offsets)
    for _ in range(len(batch.records) - 1):
        next(offsets)
    return first.to_bytes(8, "big") + data[8:]


def test_finding_a_log_whose_end_was_cleaned_away_is_loaded() -> None:
    """Found by the simulation: the load met nothing before the end of the log, and took that for damage."""
    bench = Bench()
    bench.segment(plain([(b"a", b"1")]))
    bench.segment(plain([(b"a", None)]))
    for _ in range(3):
        bench.cleaner.clean(bench.log)
        bench.clock.advance(2 * DAY)
    assert bench.batches() == []
    assert bench.log.log_start_offset < bench.log.log_end_offset
    assert not replay_log(bench.log, 1 << 20).offsets
