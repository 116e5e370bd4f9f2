"""The records that a coordinator writes and reads, in every version, and how people get to see them."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kohort.cli.main import cli
from kohort.errors import ErrorCode
from kohort.group.states import GroupState
from kohort.records.consumer_protocol import Assignment, TopicPartitions, encode_assignment
from kohort.records.offsets_topic import (
    GroupKey,
    InterBrokerVersion,
    OffsetCommitValue,
    OffsetKey,
    UnknownKey,
    UnknownValue,
    decode_key,
    decode_value,
    encode_value,
    group_value_version,
    offset_value_version,
)
from tests.group.context import GROUP, Context, only, value
from tests.group.log_builder import (
    OFFSETS,
    TIME,
    Pair,
    batch,
    commits,
    group_record,
    group_tombstone,
    loaded,
    member,
    offset_tombstones,
    offsets_of,
)

_RELEASES = ("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6")
_INTERNAL_VERSIONS = (2, 3, 1, 3, 1, 1, 2, 3, 2, 2, 2, 1, 1)
EVERY_VERSION = [
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0"),
    *(f"{release}-IV{n}" for release, count in zip(_RELEASES, _INTERNAL_VERSIONS, strict=True) for n in range(count)),
]
"""Every inter-broker protocol version that Kafka 2.6 knows."""

every_version = pytest.mark.parametrize("inter_broker_version", EVERY_VERSION)
KEY = OffsetKey(GROUP, "foo", 0)


def offset_version(inter_broker_version: str) -> int:
    """Of a commit without an expiry, by the place in the list of versions."""
    at = EVERY_VERSION.index(inter_broker_version)
    return 1 if at < EVERY_VERSION.index("2.1-IV0") else 2 if at < EVERY_VERSION.index("2.1-IV1") else 3


def written(inter_broker_version: str, committed: OffsetCommitValue) -> bytes:
    """The value that a coordinator writes for a commit."""
    c = Context(inter_broker_protocol_version=inter_broker_version)
    assert only(c.commit({("foo", 0): committed}).result) is ErrorCode.NONE
    (record,) = c.topic.records(c.partition())
    assert decode_key(record.key) == KEY
    assert record.value is not None
    return record.value


@every_version
def test_a_commit_has_the_version_that_all_brokers_understand(inter_broker_version: str) -> None:
    """GMM testSerdeOffsetCommitValue"""
    committed = value(537, "metadata", leader_epoch=15, time=TIME)
    raw = written(inter_broker_version, committed)
    version = offset_version(inter_broker_version)
    assert int.from_bytes(raw[:2], "big") == version
    read = decode_value(KEY, raw)
    assert (read.offset, read.metadata, read.commit_timestamp) == (537, "metadata", TIME)
    assert read.leader_epoch == (15 if version >= 3 else -1)


@every_version
def test_a_commit_with_an_expiry_has_version_1_everywhere(inter_broker_version: str) -> None:
    """GMM testSerdeOffsetCommitValueWithExpireTimestamp"""
    committed = value(537, "metadata", time=TIME, expire=TIME + 1_000)
    raw = written(inter_broker_version, committed)
    assert int.from_bytes(raw[:2], "big") == 1
    assert decode_value(KEY, raw) == committed._replace(version=1)


@every_version
def test_a_commit_without_an_expiry_says_so_where_there_is_a_field_for_it(inter_broker_version: str) -> None:
    """GMM testSerdeOffsetCommitValueWithNoneExpireTimestamp"""
    committed = value(537, "metadata", time=TIME)
    raw = written(inter_broker_version, committed)
    version = offset_version(inter_broker_version)
    assert int.from_bytes(raw[:2], "big") == version
    assert decode_value(KEY, raw) == committed._replace(version=version)
    if version == 1:
        assert raw[-8:] == (-1).to_bytes(8, "big", signed=True)


def test_the_versions_of_values_are_chosen_by_the_inter_broker_version_alone() -> None:
    chosen = [
        (offset_value_version(parsed, -1), offset_value_version(parsed, 5), group_value_version(parsed))
        for parsed in map(InterBrokerVersion.parse, EVERY_VERSION)
    ]
    assert chosen == [(1, 1, 0)] * 6 + [(1, 1, 1)] * 11 + [(2, 1, 2)] + [(3, 1, 2)] * 4 + [(3, 1, 3)] * 6


@pytest.mark.parametrize(("release", "version"), [("0.9.0", 0), ("0.10.1-IV0", 1), ("2.1-IV0", 2)])
def test_groups_that_older_brokers_wrote_are_read(release: str, version: int) -> None:
    """GMM testReadFromOldGroupMetadata"""
    assert group_value_version(InterBrokerVersion.parse(release)) == version
    static = member("memberId", group_instance_id="lost in these versions")
    group = loaded(batch(group_record(1, static, protocol_type="protocolType", version=version))).group()
    assert (group.group_id, group.generation_id) == (GROUP, 1)
    assert (group.protocol_type, group.protocol_name) == ("protocolType", "range")
    assert list(group.members) == ["memberId"]
    assert group.static_members == {}


@every_version
def test_a_group_tells_since_when_it_is_in_its_state_from_version_2_on(inter_broker_version: str) -> None:
    """GMM testCurrentStateTimestampForAllGroupMetadataVersions"""
    c = Context(inter_broker_protocol_version=inter_broker_version)
    c.stable_group()
    stored_at = c.records()[-1][1].current_state_timestamp
    has_it = EVERY_VERSION.index(inter_broker_version) >= EVERY_VERSION.index("2.1-IV0")
    assert stored_at == (c.clock.now_ms() if has_it else -1)
    read_back = c.restarted().group()
    assert read_back.state is GroupState.STABLE
    assert read_back.current_state_timestamp == (c.clock.now_ms() if has_it else None)


def test_a_group_of_an_unknown_version_is_a_value_that_says_so() -> None:
    """GMM testShouldThrowExceptionForUnsupportedGroupMetadataVersion

    Python: what cannot be read is a value with the reason; one odd record does not end a load
    """
    key, raw = group_record(1, "memberId")
    assert raw is not None
    odd = (-32_768).to_bytes(2, "big", signed=True) + raw[2:]
    assert decode_value(GroupKey(GROUP), odd) == UnknownValue(-32_768, odd, "unknown value version -32768")
    c = loaded(batch((key, odd), *commits(OFFSETS, "foo")))
    assert c.find() is None
    assert offsets_of(c, "foo") == OFFSETS
    assert c.coordinator.snapshot()["unreadable-records"] == 1


def test_a_key_of_an_unknown_type_is_a_key_that_says_so() -> None:
    """GMM testReadMessageKeyCanReadUnknownMessage

    Repaired: KIP-915, an unknown record key is skipped, counted and reported
    """
    raw = b"\x7f\xff\x00\x00"
    assert decode_key(raw) == UnknownKey(32_767, raw, "unknown key type 32767")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_values_of_every_version_are_read_back(version: int) -> None:
    written_value = OffsetCommitValue(5, "meta", TIME, 7 if version >= 3 else -1, version=version)
    assert decode_value(KEY, encode_value(written_value)) == written_value


# How people see them


def dumped(tmp_path: Path, *pairs: Pair) -> list[dict[str, Any]]:
    """The rows of `kohort dump --format jsonl`."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(*pairs))
    run = CliRunner().invoke(cli, ["dump", str(path), "--format", "jsonl"])
    assert run.exit_code == 0, run.output
    return [json.loads(line) for line in run.output.splitlines()]


def test_a_committed_offset_is_shown_with_group_partition_and_offset(tmp_path: Path) -> None:
    """GMM testCommittedOffsetParsing

    Python: kohort dump shows the same as a row
    """
    (row,) = dumped(tmp_path, *commits({("topic", 0): 35}, "group"))
    assert (row["kind"], row["tombstone"]) == ("offset_commit", False)
    assert (row["group"], row["topic"], row["topic_partition"]) == ("group", "topic", 0)
    assert row["committed_offset"] == 35
    assert (row["metadata"], row["commit_timestamp"], row["value_version"]) == ("", TIME, 3)


def test_a_removed_offset_is_shown_as_a_tombstone(tmp_path: Path) -> None:
    """GMM testCommittedOffsetTombstoneParsing

    Python: kohort dump shows the same as a row
    """
    (row,) = dumped(tmp_path, *offset_tombstones(("topic", 0), group="group"))
    assert (row["kind"], row["tombstone"], row["value_version"]) == ("offset_commit", True, None)
    assert (row["group"], row["topic"], row["topic_partition"]) == ("group", "topic", 0)
    assert "committed_offset" not in row


def test_a_group_is_shown_with_its_assignment_even_without_user_data(tmp_path: Path) -> None:
    """GMM testGroupMetadataParsingWithNullUserData

    Python: kohort dump shows the same as a row
    """
    assignment = encode_assignment(Assignment((TopicPartitions("topic", (0,)),), user_data=None))
    (row,) = dumped(tmp_path, group_record(935, member("98098230493", assignment=assignment), group="foo"))
    assert (row["kind"], row["tombstone"], row["group"]) == ("group_metadata", False, "foo")
    assert (row["protocol_type"], row["protocol"], row["generation"]) == ("consumer", "range", 935)
    assert [(member["member_id"], member["assignment"]) for member in row["members"]] == [
        ("98098230493", [["topic", 0]])
    ]


def test_a_removed_group_is_shown_as_a_tombstone(tmp_path: Path) -> None:
    """GMM testGroupMetadataTombstoneParsing

    Python: kohort dump shows the same as a row
    """
    (row,) = dumped(tmp_path, group_tombstone("group"))
    assert (row["kind"], row["tombstone"], row["group"]) == ("group_metadata", True, "group")
    assert "generation" not in row
