"""Logs by real brokers: we read what Kafka reads, write what it wrote, and load what it loads."""

import base64
import re
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from kohort.records import arrow
from kohort.records.batch import read_batches
from kohort.records.columns import decode
from kohort.records.consumer_protocol import decode_assignment, decode_subscription
from kohort.records.finish import finish
from kohort.records.json_text import to_json
from kohort.records.key_table import KeyTable
from kohort.records.modern_groups import kafka_uuid
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kohort.records.replay import Piece, Rule
from kohort.records.rows import ROW_KEYS, assigned_partitions, describe, subscribed_topics
from kohort.records.state import State
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.pieces import array

every_set = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)


@every_set
def test_every_record_reads_as_kafka_reads_it(golden: GoldenSet) -> None:
    dumped = golden.dumped()
    for partition, path in golden.segments():
        batches = list(read_batches(path.read_bytes()))
        told = dumped.get(f"__consumer_offsets-{partition}/{path.name}", [])
        assert len(batches) == len(told)
        for batch, want in zip(batches, told, strict=True):
            header = batch.header
            assert (header.position, header.size, header.magic, header.crc) == tuple(
                int(want[name]) for name in ("position", "size", "magic", "crc")
            )
            if header.magic == 2:
                assert (
                    header.base_offset,
                    header.last_offset,
                    header.record_count,
                    header.base_sequence,
                    header.last_sequence,
                    header.producer_id,
                    header.producer_epoch,
                    header.partition_leader_epoch,
                    header.max_timestamp,
                ) == tuple(
                    int(want[name])
                    for name in [
                        "baseOffset",
                        "lastOffset",
                        "count",
                        "baseSequence",
                        "lastSequence",
                        "producerId",
                        "producerEpoch",
                        "partitionLeaderEpoch",
                        "CreateTime",
                    ]
                )
                assert header.is_transactional == (want["isTransactional"] == "true")
                assert header.is_control == (want["isControl"] == "true")
                horizon = re.search(r"\d+", want["deleteHorizonMs"])
                assert header.delete_horizon == (int(horizon[0]) if horizon else None)
            assert len(batch.records) == len(want["records"])
            for record, said in zip(batch.records, want["records"], strict=True):
                assert record.offset == int(said["offset"])
                assert record.timestamp == int(said["CreateTime"])
                assert len(record.key or b"") == int(said["keySize"])
                assert (-1 if record.value is None else len(record.value)) == int(said["valueSize"])
                row = describe(partition, header, record)
                if header.is_control:
                    assert row["control_type"].upper() == said["endTxnMarker"]
                    assert row["coordinator_epoch"] == int(said["coordinatorEpoch"])
                else:
                    _assert_same_content(row, said)


def _assert_same_content(row: dict[str, Any], said: dict[str, Any]) -> None:
    assert row["key_version"] == int(said["key"]["type"])
    assert row["tombstone"] == (said["payload"] is None)
    assert row["value_version"] == (None if said["payload"] is None else int(said["payload"]["version"]))
    ours = {"group": row["group"]}
    if row["kind"] == "offset_commit":
        ours |= {"topic": row["topic"], "partition": row["topic_partition"]}
    elif row["kind"] != "group_metadata":
        ours = _camel(row["key"])
    assert ours == said["key"]["data"]
    if said["payload"] is not None:
        _assert_same_fields(_value_in_kafkas_words(row), said["payload"]["data"])


def _value_in_kafkas_words(row: dict[str, Any]) -> Any:
    if row["kind"] == "offset_commit":
        names = {"committed_offset": "offset", "topic_id": "topicId"} | {
            name: name for name in ("metadata", "leader_epoch", "commit_timestamp", "expire_timestamp")
        }
        return _camel({new: row[old] for old, new in names.items()})
    if row["kind"] == "group_metadata":
        told = {name: row[name] for name in ("protocol_type", "generation", "protocol", "leader")}
        told |= {"current_state_timestamp": row["state_timestamp"]}
        told["members"] = [
            {
                "member_id": member["member_id"],
                "group_instance_id": member["instance_id"],
                "client_id": member["client_id"],
                "client_host": member["client_host"],
                "rebalance_timeout": member["rebalance_timeout"],
                "session_timeout": member["session_timeout"],
                "subscription": _subscription(row["protocol_type"], member["subscription_raw"]),
                "assignment": _assignment(row["protocol_type"], member["assignment_raw"]),
            }
            for member in row["members"]
        ]
        return _camel(told)
    return _camel(row["value"])


def _subscription(protocol_type: str, raw: bytes) -> Any:
    if protocol_type != "consumer":
        return raw
    read = decode_subscription(raw)
    return {
        "topics": list(read.topics),
        "user_data": read.user_data,
        "owned_partitions": [{"topic": t.topic, "partitions": list(t.partitions)} for t in read.owned_partitions],
        "generation_id": read.generation,
        "rack_id": read.rack,
    }


def _assignment(protocol_type: str, raw: bytes) -> Any:
    if protocol_type != "consumer" or not raw:
        return raw
    read = decode_assignment(raw)
    partitions = [{"topic": t.topic, "partitions": list(t.partitions)} for t in read.partitions]
    return {"assigned_partitions": partitions, "user_data": read.user_data}


def _camel(value: Any) -> Any:
    """Our names and types in Kafka's JSON."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), name): _camel(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if isinstance(value, UUID):
        return kafka_uuid(value)
    return base64_text(value) if isinstance(value, bytes) else value


def _assert_same_fields(ours: Any, theirs: Any) -> None:
    """Kafka leaves out fields that a version does not have and tagged ones at their default; ours are at it."""
    if isinstance(theirs, dict):
        assert theirs.keys() <= ours.keys()
        for name, value in ours.items():
            if name in theirs:
                _assert_same_fields(value, theirs[name])
            else:
                assert value in (None, -1, 0, [])
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            _assert_same_fields(mine, other)
    else:
        assert ours == theirs


@every_set
def test_decoded_values_encode_to_the_bytes_that_kafka_wrote(golden: GoldenSet) -> None:
    compared = 0
    for _, path in golden.segments():
        data = path.read_bytes()
        for batch in read_batches(data):
            if batch.header.magic == 2 and batch.header.codec == 0:
                assert batch.encode() == data[batch.header.position : batch.header.end]
            for record in () if batch.header.is_control else batch.records:
                key = decode_key(record.key)
                value = decode_value(key, record.value)
                if isinstance(key, OffsetKey | GroupKey):
                    assert encode_key(key) == record.key
                    compared += 1
                if isinstance(value, OffsetCommitValue | GroupMetadataValue):
                    assert encode_value(value) == record.value
                    compared += 1
    assert compared > 50


@every_set
def test_every_key_and_value_is_readable(golden: GoldenSet) -> None:
    state = load(golden, Rule.POSITION)
    assert (state.unreadable, state.unreadable_keys) == ([], 0)


@every_set
def test_columns_are_the_rows_of_the_scalar_codec(golden: GoldenSet) -> None:
    for partition, path in golden.segments():
        data = path.read_bytes()
        rows = [describe(partition, batch.header, record) for batch in read_batches(data) for record in batch.records]
        table = arrow.to_arrow(decode(array(data), KeyTable()).columns, partition)
        assert table.equals(arrow.from_rows(rows))
        assert tuple(table.schema.names) == ROW_KEYS


def load(golden: GoldenSet, rule: Rule) -> State:
    pieces = []
    for paths in golden.partitions().values():
        piece = Piece(rule)
        for path in paths:
            piece.append(decode(array(path.read_bytes()), piece.keys).columns)
        pieces.append(piece)
    return finish(pieces)


def offsets_of(told: dict[str, Any]) -> dict[tuple[str, str, int], tuple[int, int, str]]:
    return {
        (group["group_id"], offset["topic"], offset["partition"]): (
            offset["offset"],
            offset["leader_epoch"],
            offset["metadata"],
        )
        for group in told["groups"]
        for offset in group.get("offsets", ())
    }


def offsets_in(state: State) -> dict[tuple[str, str, int], tuple[int, int, str]]:
    return {
        tuple(key): (committed.value.offset, committed.value.leader_epoch, committed.value.metadata)
        for key, committed in state.offsets.items()
    }


@every_set
def test_offsets_are_those_that_the_running_broker_answered(golden: GoldenSet) -> None:
    told = offsets_of(golden.state())
    if golden.name == "kafka-2.6.3-ibp-0.10.0":  # its value version has no room for the leader epochs held in memory
        told = {key: (offset, -1, metadata) for key, (offset, _, metadata) in told.items()}
    assert offsets_in(load(golden, Rule.POSITION)) == told


@every_set
def test_the_whole_state_is_what_the_broker_made_of_this_log(golden: GoldenSet) -> None:
    state = load(golden, golden.loads_by)
    told = golden.state_reloaded()
    assert offsets_in(state) == offsets_of(told)
    assert state.groups.keys() == {group["group_id"] for group in told["groups"]}
    pending = {(key.group, key.topic, key.partition) for offsets in state.pending.values() for key in offsets}
    unstable = {
        (group["group_id"], *_topic_and_partition(partition))
        for group in told["groups"]
        for partition in group.get("unstable_partitions", ())
    }
    # OffsetFetch of everything names a pending partition only where an offset is committed already.
    assert {key for key in pending if key in offsets_in(state)} == unstable
    assert bool(pending) == any("txn-open" in name for name in state.groups)
    for group in told["groups"]:
        ours = state.groups[group["group_id"]]
        assert (ours.type, ours.state) == (group["group_type"], group["state"])
        if group["group_type"] == "classic":
            _assert_same_classic_group(ours, group)
        else:
            _assert_same_modern_group(ours, group)


@every_set
def test_the_groups_are_those_of_the_running_broker(golden: GoldenSet) -> None:
    """But for one that an older broker held in memory alone, and one that it had swept out already."""
    told = {group["group_id"] for group in golden.state()["groups"]}
    ours = load(golden, Rule.POSITION).groups.keys()
    if golden.loads_by is Rule.POSITION:
        assert ours == told
    else:
        assert {name.split(".")[1] for name in told - ours} <= {"g-never-synced"}
        assert {name.split(".")[1] for name in ours - told} <= {"g-txn-aborted-only"}


def _topic_and_partition(told: Any) -> tuple[str, int]:
    if isinstance(told, dict):
        return told["topic"], told["partition"]
    return told[0], told[1]


def _assert_same_classic_group(ours: Any, told: dict[str, Any]) -> None:
    assert ours.protocol_type == told["protocol_type"]
    assert (ours.protocol or "") == told["protocol"]
    if "generation_in_last_group_metadata_record" in told:
        assert ours.generation == told["generation_in_last_group_metadata_record"]
    members = {member["member_id"]: member for member in told["members"]}
    assert {member.member_id for member in ours.members} == members.keys()
    for member in ours.members:
        other = members[member.member_id]
        assert (member.client_id, member.client_host, member.instance_id) == (
            other["client_id"],
            other["client_host"],
            other["group_instance_id"],
        )
        assert base64_text(member.subscription) == other["metadata_b64"]
        assert base64_text(member.assignment) == other["assignment_b64"]
        if "assignment" in other:
            assigned = assigned_partitions(ours.protocol_type, member.assignment)
            assert sorted(assigned or []) == sorted(map(tuple, other["assignment"]))
            assert sorted(subscribed_topics(ours.protocol_type, member.subscription) or []) == sorted(
                other["subscribed_topics"]
            )


def _assert_same_modern_group(ours: Any, told: dict[str, Any]) -> None:
    described = told.get("consumer_group_describe") or told["share_group_describe"]
    assert ours.generation == told["group_epoch"]
    if ours.members:
        assert ours.protocol == described["assignorName"]
    members = {member["memberId"]: member for member in described["members"]}
    assert {member.member_id for member in ours.members} == members.keys()
    for member in ours.members:
        other = members[member.member_id]
        assert (member.client_id, member.client_host, member.instance_id, member.epoch) == (
            other["clientId"],
            other["clientHost"],
            other.get("instanceId"),
            other["memberEpoch"],
        )
        assert sorted(member.topics) == sorted(other["subscribedTopicNames"])
        assert sorted(member.topic_ids) == sorted(
            (topic["topicId"], partition)
            for topic in other["assignment"]["topicPartitions"]
            for partition in topic["partitions"]
        )


def test_json_of_every_row_is_plain_ascii() -> None:
    for golden in GOLDEN:
        for partition, path in golden.segments():
            for batch in read_batches(path.read_bytes()):
                for record in batch.records:
                    assert to_json(describe(partition, batch.header, record)).isascii()


def test_a_window_gives_what_the_whole_gives() -> None:
    """However small the windows, and wherever they end, the records are the same."""
    _, path = GOLDEN[0].segments()[0]
    data = path.read_bytes()
    whole = arrow.to_arrow(decode(array(data), KeyTable()).columns, 0)
    for size in (61, 100, 1000, 5000):
        keys, parts, kept, at = KeyTable(), [], b"", 0
        while at < len(data) or kept:
            window = array(kept + data[at : at + size])
            at += size
            decoded = decode(window, keys, final=at >= len(data))
            parts.append(arrow.to_arrow(decoded.columns, 0))
            kept = window[decoded.consumed :].tobytes()
        assert arrow.pa.concat_tables(parts).combine_chunks().equals(whole)
    assert np.all(np.diff(whole["offset"].to_numpy()) > 0)


def base64_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
