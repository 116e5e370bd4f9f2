"""What readers of committed data see: the last stable offset and the aborted transactions."""

from kohort.log.partition import ReadUpTo
from kohort.log.txn_index import AbortedTransaction
from tests.log.log_bench import Bench, batch, marker


def data(producer: int, *values: str) -> bytes:
    return batch(*(values or ("v",)), producer=producer, epoch=0, sequence=0, transactional=True)


def test_without_transactions_everything_that_is_durable_is_stable() -> None:
    bench = Bench()
    bench.append(batch("a"), batch("b"))
    assert bench.log.first_unstable_offset is None
    assert bench.log.last_stable_offset == 2


def test_an_open_transaction_holds_the_last_stable_offset_at_its_first_batch() -> None:
    bench = Bench()
    bench.append(batch("a"), data(1), batch("b"), data(2), data(1))
    assert bench.log.first_unstable_offset == bench.log.last_stable_offset == 1
    assert bench.values(ReadUpTo.LAST_STABLE_OFFSET) == ["a"]
    bench.append(marker(1))
    assert bench.log.last_stable_offset == 3
    bench.append(marker(2))
    assert bench.log.last_stable_offset == bench.log.log_end_offset == 7


def test_the_last_stable_offset_does_not_fall_behind_the_log_start() -> None:
    bench = Bench()
    bench.append(data(1), batch("a"), batch("b"))
    bench.log.delete_records_before(2)
    assert bench.log.last_stable_offset == 2


def test_a_marker_counts_when_it_is_durable_itself() -> None:
    bench = Bench()
    bench.append(data(1))
    bench.append(marker(1), flush=False)
    assert bench.log.last_stable_offset == 0
    bench.log.flush()
    assert bench.log.last_stable_offset == 2


def test_a_transaction_that_is_not_durable_yet_does_not_raise_the_stable_offset_beyond_the_watermark() -> None:
    bench = Bench()
    bench.append(batch("a"))
    bench.append(data(1), flush=False)
    assert bench.log.first_unstable_offset == 1
    assert bench.log.last_stable_offset == bench.log.high_watermark == 1


def test_readers_of_committed_data_are_told_what_was_aborted() -> None:
    bench = Bench()
    bench.append(data(1), data(2), batch("a"), marker(1, commit=False), data(3), marker(2), marker(3, commit=False))
    fetched = bench.log.read(0, 10_000, up_to=ReadUpTo.LAST_STABLE_OFFSET)
    assert fetched.last_stable_offset == 7
    assert fetched.aborted_transactions == (AbortedTransaction(1, 0, 3, 1), AbortedTransaction(3, 4, 6, 7))
    assert bench.log.read(0, 10_000).aborted_transactions == ()
    later = bench.log.read(4, 10_000, up_to=ReadUpTo.LAST_STABLE_OFFSET)
    assert later.aborted_transactions == (AbortedTransaction(3, 4, 6, 7),)


def test_a_transaction_that_ends_in_a_later_segment_is_told_to_readers_of_an_earlier_one() -> None:
    bench = Bench()
    bench.segment(data(1), batch("a"))
    bench.segment(batch("b"), data(2))
    bench.segment(marker(1, commit=False), marker(2))
    fetched = bench.log.read(0, 10_000, up_to=ReadUpTo.LAST_STABLE_OFFSET)
    assert fetched.next_offset == 2
    assert [txn.producer_id for txn in fetched.aborted_transactions] == [1]


def test_a_marker_without_data_aborts_nothing() -> None:
    bench = Bench()
    bench.append(marker(1, commit=False))
    assert bench.log.aborted_transactions(0, 10) == []
    assert bench.log.last_stable_offset == 1


def test_open_and_aborted_transactions_survive_a_clean_stop_and_a_crash() -> None:
    bench = Bench()
    bench.segment(data(1), data(2))
    bench.append(marker(1, commit=False), batch("a"))
    for clean in (True, False):
        if clean:
            bench.restart()
        else:
            bench.open()
        assert bench.log.last_stable_offset == 1
        assert bench.log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 2, 1)]
    bench.append(marker(2, commit=False))
    assert bench.log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 4, 5)]
