"""Keys and values of the offsets topic."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.records.coordinator_records import RECORD_TYPES
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    InterBrokerVersion,
    OffsetCommitValue,
    OffsetKey,
    UnknownKey,
    UnknownValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    group_value_version,
    offset_value_version,
)
from tests.records.strategies import group_keys, group_values, offset_keys, offset_values

KEY = OffsetKey("g", "t", 0)


@given(st.one_of(offset_keys, group_keys))
@settings(max_examples=200)
def test_a_key_comes_back(key: OffsetKey | GroupKey) -> None:
    assert decode_key(encode_key(key)) == key


@given(offset_values)
@settings(max_examples=300)
def test_an_offset_value_of_any_version_comes_back(value: OffsetCommitValue) -> None:
    assert decode_value(KEY, encode_value(value)) == value


@given(group_values())
@settings(max_examples=300)
def test_a_group_value_of_any_version_comes_back(value: GroupMetadataValue) -> None:
    assert decode_value(GroupKey("g"), encode_value(value)) == value


@given(st.binary(max_size=60), st.binary(max_size=60))
@settings(max_examples=1000)
def test_no_bytes_raise(key: bytes, value: bytes) -> None:
    decode_value(decode_key(key), value)
    for number in range(30):
        decode_value(decode_key(number.to_bytes(2, "big") + b"\x00\x01g\x00\x01m" + key), b"\x00\x00" + value)


@pytest.mark.parametrize(
    ("version", "offset_value", "group_value"),
    [
        ("0.8.2", 1, 0),
        ("0.10.0", 1, 0),
        ("0.10.1-IV0", 1, 1),
        ("0.10.2", 1, 1),
        ("1.1", 1, 1),
        ("2.0", 1, 1),
        ("2.1-IV0", 2, 2),
        ("2.1-IV1", 3, 2),
        ("2.1", 3, 2),
        ("2.2", 3, 2),
        ("2.3-IV0", 3, 3),
        ("2.6", 3, 3),
        ("2.6.3", 3, 3),
    ],
)
def test_the_inter_broker_version_chooses_the_value_versions(version: str, offset_value: int, group_value: int) -> None:
    ibp = InterBrokerVersion.parse(version)
    assert offset_value_version(ibp, expire_timestamp=-1) == offset_value
    assert group_value_version(ibp) == group_value


def test_an_explicit_expiry_is_written_in_version_1_whatever_the_release() -> None:
    assert offset_value_version(InterBrokerVersion.parse("2.6"), expire_timestamp=5) == 1


def test_no_inter_broker_version() -> None:
    with pytest.raises(ValueError, match="not an inter-broker"):
        InterBrokerVersion.parse("latest")


def test_what_nobody_knows_is_a_value_too() -> None:
    assert decode_key(b"\x00\x63abc") == UnknownKey(99, b"\x00\x63abc", "unknown key type 99")
    assert decode_key(None) == UnknownKey(None, None, "no key")
    assert decode_value(KEY, b"\x00\x09abc") == UnknownValue(9, b"\x00\x09abc", "unknown value version 9")
    short = decode_value(KEY, b"\x00\x03\x00")
    assert isinstance(short, UnknownValue)
    assert short.reason.startswith("malformed")
    assert decode_value(KEY, None) is None


def test_malformed_text_reads_as_in_java() -> None:
    assert decode_key(b"\x00\x02\x00\x02\xffg") == GroupKey("�g")
    assert encode_key(GroupKey("\ud800")) == b"\x00\x02\x00\x01?"


def test_the_names_of_newer_records() -> None:
    assert sorted(RECORD_TYPES) == list(range(3, 25))
    key = decode_key(b"\x00\x08\x00\x01g\x00\x01m")
    assert (key.kind, key.version) == ("consumer_group_current_member_assignment", 8)


def test_a_streams_member_reads_by_name() -> None:
    """No golden log holds one: bytes put together by hand."""
    key = decode_key(b"\x00\x13\x00\x01g\x00\x01m")
    raw = b"\x00\x00\x00\x02r\x02c\x02h\x00\x00\x00\x05\x00\x00\x00\x01\x02p"
    raw += b"\x01\x03eh\xff\xff\x00\x02\x02k\x02v\x00\x00"
    value = decode_value(key, raw)
    assert value is not None
    assert not isinstance(value, UnknownValue)
    assert value.fields["user_endpoint"] == {"host": "eh", "port": 65535}
    assert value.fields["client_tags"] == [{"key": "k", "value": "v"}]
