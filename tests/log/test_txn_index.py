"""The index of aborted transactions."""

import pytest

from kohort.errors import CorruptLog
from kohort.log.txn_index import AbortedTransaction, TransactionIndex

ENTRIES = [
    AbortedTransaction(7, 0, 10, 11),
    AbortedTransaction(8, 5, 12, 13),
    AbortedTransaction(9, 20, 30, 15),
    AbortedTransaction(7, 40, 45, 46),
]


def test_an_entry_is_34_bytes_of_version_producer_first_last_and_last_stable_offset() -> None:
    data = TransactionIndex([AbortedTransaction(7, 1, 10, 11)]).encode()
    assert data == bytes.fromhex("0000 0000000000000007 0000000000000001 000000000000000a 000000000000000b")


def test_entries_come_back_as_they_were_written() -> None:
    assert list(TransactionIndex.decode(TransactionIndex(ENTRIES).encode(), 0)) == ENTRIES


def test_a_range_gets_the_transactions_that_touch_it() -> None:
    index = TransactionIndex(ENTRIES)
    assert index.collect(0, 100) == (ENTRIES, False)
    assert index.collect(11, 13) == ([ENTRIES[1]], True)
    assert index.collect(31, 39) == ([], True)
    assert index.collect(46, 100) == ([], False)


def test_the_search_ends_where_the_last_stable_offset_has_passed_the_range() -> None:
    found, complete = TransactionIndex(ENTRIES).collect(0, 11)
    assert found == [ENTRIES[0]]
    assert complete


def test_truncation_forgets_transactions_by_their_markers() -> None:
    index = TransactionIndex(ENTRIES)
    index.truncate_to(30)
    assert list(index) == ENTRIES[:2]


@pytest.mark.parametrize(
    ("entries", "cut"),
    [
        (ENTRIES, -1),
        ([AbortedTransaction(1, 9, 8, 9)], None),
        (ENTRIES[::-1], None),
        ([AbortedTransaction(1, 0, 4, 9)], None),
    ],
    ids=["half an entry", "ends before it begins", "out of order", "ends before the segment"],
)
def test_what_does_not_add_up_is_refused(entries: list[AbortedTransaction], cut: int | None) -> None:
    with pytest.raises(CorruptLog):
        TransactionIndex.decode(TransactionIndex(entries).encode()[:cut], 5)


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(CorruptLog, match="version 1"):
        TransactionIndex.decode(b"\x00\x01" + TransactionIndex(ENTRIES).encode()[2:], 0)
