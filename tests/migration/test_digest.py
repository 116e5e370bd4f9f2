"""A checksum that notices everything that a record says."""

import pytest

from kohort.migration.digest import Digest
from kohort.records.batch import Header, Record

RECORD = Record(5, 1_000, b"key", b"value", (Header("a", b"1"), Header("b", None)))


def digest(*records: Record) -> str:
    found = Digest()
    found.add(records)
    return found.text()


@pytest.mark.parametrize(
    "other",
    [
        RECORD._replace(timestamp=1_001),
        RECORD._replace(key=None),
        RECORD._replace(key=b""),
        RECORD._replace(key=b"ke", value=b"yvalue"),
        RECORD._replace(value=None),
        RECORD._replace(headers=()),
        RECORD._replace(headers=(Header("a", b"1"), Header("b", b""))),
        RECORD._replace(headers=(Header("b", None), Header("a", b"1"))),
        RECORD._replace(headers=(Header("a1", b""), Header("b", None))),
    ],
)
def test_records_that_differ_have_other_digests(other: Record) -> None:
    assert digest(other) != digest(RECORD)


def test_nothing_is_not_an_empty_key() -> None:
    assert digest(RECORD._replace(key=None)) != digest(RECORD._replace(key=b""))


def test_offsets_do_not_count_and_the_order_does() -> None:
    other = RECORD._replace(value=b"other")
    assert digest(RECORD._replace(offset=99), other) == digest(RECORD, other) != digest(other, RECORD)


def test_it_does_not_matter_how_records_come_and_a_copy_goes_on_by_itself() -> None:
    one = Digest()
    one.add([RECORD])
    two = one.copy()
    two.add([RECORD])
    assert (one.records, two.records) == (1, 2)
    assert one.text() == digest(RECORD)
    assert two.text() == digest(RECORD, RECORD)
