"""A group belongs to the partition that Java would find for it, whatever its id is made of."""

import pytest

from kohort.group.placement import java_hash, partition_for

SMALLEST_INT = -(2**31)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("groupId", 293428218),
        ("otherGroup", -204443313),
        ("my-group", -1906497762),
        ("connect-cluster", 1440343063),
        ("console-consumer-12345", 158455506),
    ],
)
def test_plain_ids_have_the_hash_code_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("\u00ff", 255),
        ("\u0100", 256),
        ("\uffff", 65535),
        ("Gruppe-äöü", 708916024),
        ("группа", 1749938458),
        ("グループ", 383750870),
        ("消费者组", 871131088),
    ],
)
def test_ids_in_other_scripts_are_hashed_by_characters_not_by_bytes(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("text", "code"), [("\U0001f600", 1772899), ("a\U0001f600b", 57849694), ("\U0010ffff", 1803232)]
)
def test_a_character_beyond_the_basic_plane_counts_as_two(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("text", "code"), [("\ud800", 55296), ("\udfff", 57343), ("\ud800a", 1714273), ("\ude00\ud83d", 1817149)]
)
def test_half_of_a_surrogate_pair_is_hashed_as_it_is(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_a_nul_is_a_character_like_any_other() -> None:
    assert java_hash("\0") == java_hash("\0\0") == 0
    assert java_hash("\0a") == java_hash("a") == 97
    assert java_hash("a\0b") == 93315


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x" * 32767, -2080510088),
        ("ä" * 16383, -1893356188),
        ("€" * 10922, 1756750720),
        ("\U0001f600" * 8191, 702240221),
        ("\0" * 32767, 0),
    ],
    ids=["one byte", "two bytes", "three bytes", "four bytes", "NUL"],
)
def test_the_longest_ids_that_fit_into_a_request_are_hashed_to_the_end(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_smallest_int_has_no_absolute_value_and_goes_to_partition_0() -> None:
    assert java_hash("polygenelubricants") == java_hash("polygenelubricants\0") == SMALLEST_INT
    assert [partition_for("polygenelubricants", partitions) for partitions in (1, 2, 7, 50)] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("group", 47),
        ("groupId", 18),
        ("otherGroup", 13),
        ("my-group", 12),
        ("test-consumer-group", 31),
        ("perf-consumer-7", 16),
        ("группа", 8),
        ("\U0001f600", 49),
        ("\ud800", 46),
        ("x" * 32767, 38),
    ],
)
def test_groups_lie_where_a_kafka_with_50_partitions_has_them(group: str, partition: int) -> None:
    assert partition_for(group, 50) == partition


@pytest.mark.parametrize(("partitions", "partition"), [(1, 0), (2, 1), (7, 4), (50, 13)])
def test_a_negative_hash_code_gives_no_negative_partition(partitions: int, partition: int) -> None:
    assert java_hash("otherGroup") < 0
    assert partition_for("otherGroup", partitions) == partition


def test_ids_with_the_same_hash_code_share_a_partition() -> None:
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert partition_for("Aa", 50) == partition_for("BB", 50) == 12
