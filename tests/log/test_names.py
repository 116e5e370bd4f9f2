"""Names of directories and files."""

import pytest

from kohort.log.names import (
    OffsetFile,
    TopicPartition,
    deleted_directory,
    is_deleted_directory,
    is_topic_name,
    offset_file,
    parse_offset_file,
    parse_partition_directory,
)


@pytest.mark.parametrize("name", ["a", "__consumer_offsets", "with.dots_and-dashes", "x" * 249])
def test_a_topic_name_is_up_to_249_letters_digits_dots_dashes_and_underscores(name: str) -> None:
    assert is_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "a\n", "x" * 250, "../x", "a\x00"])
def test_other_names_are_refused(name: str) -> None:
    assert not is_topic_name(name)


def test_the_partition_stands_behind_the_last_dash() -> None:
    assert parse_partition_directory("a-b-12") == TopicPartition("a-b", 12)


@pytest.mark.parametrize("name", ["orders", "orders-", "-1", "orders-x", "orders-01", "a/b-1", "..-1", "o-9999999999"])
def test_other_directories_are_no_partitions(name: str) -> None:
    assert parse_partition_directory(name) is None


def test_a_file_is_named_after_an_offset_in_twenty_digits_with_its_kind_and_state() -> None:
    assert offset_file(42, ".log") == "00000000000000000042.log"
    assert parse_offset_file("00000000000000000042.txnindex.swap") == OffsetFile(42, ".txnindex", ".swap")
    assert parse_offset_file("42.log") is None
    assert parse_offset_file("00000000000000000042.logs") is None


def test_a_deleted_partition_is_named_so_that_it_is_told_apart_and_fits_a_file_name() -> None:
    name = deleted_directory(TopicPartition("x" * 249, 7), "0123456789abcdef" * 2)
    assert len(name) == 255
    assert name.endswith("-7." + "0123456789abcdef" * 2 + "-delete")
    assert is_deleted_directory(name)
    assert parse_partition_directory(name) is None
    assert not is_deleted_directory("a-topic-delete")
