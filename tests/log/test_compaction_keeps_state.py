"""Whatever was written, cleaning it in any way at any moment changes nothing for a reader."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.log.compaction import Aborted, Compaction, LastRecord, OffsetMap, Rules
from kohort.log.txn_index import AbortedTransaction
from kohort.records.batch import read_batch, read_batches, stamp
from kohort.records.compression import Codec
from tests.log.folding import TIME, Entry, State, fold_bytes, marker, plain, transactional

DAY = 86_400_000
_KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"\xff\0", None])
_ENTRIES = st.lists(st.tuples(_KEYS, st.sampled_from([b"1", b"2", b"", None])), min_size=1, max_size=3)
_PRODUCERS = st.integers(7, 8)
_CODECS = st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP])

_PLAIN = st.builds(lambda entries, codec: plain(entries, codec=codec), _ENTRIES, _CODECS)
_DATA = st.builds(lambda pid, entries, codec: transactional(pid, entries, codec=codec), _PRODUCERS, _ENTRIES, _CODECS)
_END = st.builds(lambda pid, commit: marker(pid, commit=commit), _PRODUCERS, st.booleans())
_TRANSACTION = st.builds(
    lambda pid, entries, commit: transactional(pid, entries) + marker(pid, commit=commit),
    _PRODUCERS,
    _ENTRIES,
    st.booleans(),
)
_WRITES = st.one_of(_PLAIN, _DATA, _END, _TRANSACTION, _TRANSACTION)


@dataclass(frozen=True)
class Clean:
    """A cleaning: how far it may go, with how much memory, how many of its batches are swapped in before a crash."""

    share: float
    memory: int
    swapped: float
    living: frozenset[int]
    days: int


_CLEAN = st.builds(
    Clean,
    share=st.sampled_from([1.0, 1.0, 0.7, 0.4]),
    memory=st.sampled_from([1 << 20, 1 << 20, 200, 400]),
    swapped=st.sampled_from([1.0, 1.0, 0.5, 0.3]),
    living=st.frozensets(_PRODUCERS),
    days=st.integers(0, 2),
)


@dataclass
class MiniLog:
    """A list of batches with offsets, and what a log knows about them."""

    batches: list[bytes] = field(default_factory=list)
    next_offset: int = 0
    first_dirty: int = 0
    now: int = TIME
    open: dict[int, int] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    last: dict[int, int | None] = field(default_factory=dict)

    def append(self, data: bytes) -> None:
        for header in [batch.header for batch in read_batches(data)]:
            self._append_batch(bytearray(data[header.position : header.end]))

    def _append_batch(self, batch: bytearray) -> None:
        stamp(batch, base_offset=self.next_offset, partition_leader_epoch=0)
        read = read_batch(bytes(batch))
        header = read.header
        if header.is_control:
            first = self.open.pop(header.producer_id, None)
            self.last.setdefault(header.producer_id, None)
            if first is not None and read.records[0].key == b"\0\0\0\0":
                self.aborted.append(AbortedTransaction(header.producer_id, first, header.last_offset, first))
        elif header.is_transactional:
            self.open.setdefault(header.producer_id, header.base_offset)
            self.last[header.producer_id] = header.last_offset
        self.batches.append(bytes(batch))
        self.next_offset = header.next_offset

    def clean(self, how: Clean) -> None:
        self.now += how.days * DAY
        stable = min(self.open.values(), default=self.next_offset)
        headers = [read_batch(batch).header for batch in self.batches]
        cleanable = sum(header.next_offset <= stable for header in headers)
        count = int(how.share * cleanable)
        spans = Aborted(self.aborted)
        latest = OffsetMap(how.memory, self.first_dirty)
        for batch in map(read_batch, self.batches[:count]):
            if batch.header.last_offset >= self.first_dirty and not latest.put_batch(
                batch, aborted=spans.contains(batch.header)
            ):
                break
        living = {pid: LastRecord(offset, 0) for pid, offset in self.last.items() if pid in how.living}
        compaction = Compaction(
            Rules(latest=latest, aborted=spans, last_records=living, now_ms=self.now, delete_retention_ms=DAY)
        )
        swapped = int(how.swapped * count)
        cleaned = [compaction.clean(read_batch(batch).header, batch) for batch in self.batches[:swapped]]
        self.batches[:swapped] = [batch for batch in cleaned if batch]
        if swapped == count:
            self.first_dirty = max(self.first_dirty, latest.latest_offset + 1)

    def state(self) -> State:
        return fold_bytes(*self.batches)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.one_of(_WRITES, _WRITES, _CLEAN), max_size=40))
def test_cleaning_changes_nothing_for_a_reader(steps: list[bytes | Clean]) -> None:
    log, untouched = MiniLog(), MiniLog()
    for step in steps:
        if isinstance(step, bytes):
            log.append(step)
            untouched.append(step)
        else:
            log.clean(step)
        assert log.state() == untouched.state()


@settings(max_examples=300, deadline=None)
@given(st.lists(_WRITES, max_size=25), _CLEAN)
def test_cleaning_twice_is_cleaning_once(steps: list[bytes], how: Clean) -> None:
    """Only horizons are set by the second: those of markers whose data went in the first."""
    log = MiniLog()
    for step in steps:
        log.append(step)
    whole = Clean(1.0, 1 << 20, 1.0, how.living, 0)
    log.clean(whole)
    once = [batch.records for data in log.batches for batch in read_batches(data)]
    log.clean(whole)
    assert [batch.records for data in log.batches for batch in read_batches(data)] == once
    settled = list(log.batches)
    log.clean(whole)
    assert log.batches == settled


def test_the_last_cleaning_leaves_what_a_reader_needs_and_nothing_else() -> None:
    log = MiniLog()
    entries: list[Entry] = [(b"a", b"1"), (b"b", None)]
    for step in (plain(entries), transactional(7, [(b"a", b"2")]), marker(7, commit=True), plain([(b"a", b"3")])):
        log.append(step)
    for _ in range(4):
        log.clean(Clean(1.0, 1 << 20, 1.0, frozenset(), 1))
    assert [record.value for data in log.batches for record in read_batch(data).records] == [b"3"]
