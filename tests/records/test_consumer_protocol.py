"""The blobs that consumers write for each other."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kohort.records.primitives import Malformed
from tests.records.strategies import int32, names

partitions = st.lists(st.builds(TopicPartitions, names, st.lists(int32, max_size=3).map(tuple)), max_size=3).map(tuple)
user_data = st.none() | st.binary(max_size=8)


@given(st.lists(names, max_size=3).map(tuple), user_data, partitions, int32, st.none() | names, st.integers(0, 3))
def test_a_subscription_of_any_version_comes_back(
    topics: tuple[str, ...],
    data: bytes | None,
    owned: tuple[TopicPartitions, ...],
    generation: int,
    rack: str | None,
    version: int,
) -> None:
    subscription = Subscription(
        topics,
        data,
        owned if version >= 1 else (),
        generation if version >= 2 else -1,
        rack if version >= 3 else None,
        version,
    )
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(partitions, user_data, st.integers(0, 3))
def test_an_assignment_comes_back(given: tuple[TopicPartitions, ...], data: bytes | None, version: int) -> None:
    assert decode_assignment(encode_assignment(Assignment(given, data, version))) == Assignment(given, data, version)


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\x00\x09" + encode_subscription(Subscription(("t",), version=3))[2:] + b"future"
    assert decode_subscription(newer) == Subscription(("t",), version=3)


@given(st.binary(max_size=30))
def test_opaque_bytes_are_malformed_and_nothing_worse(raw: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with contextlib.suppress(Malformed):
            decode(raw)


def test_no_version_below_zero() -> None:
    with pytest.raises(Malformed, match="version -1"):
        decode_assignment(b"\xff\xff")
