"""Logs by real brokers, loaded by the coordinator: it answers as the brokers that wrote them did."""

import base64
from typing import Any

import pytest

from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.group.requests import PartitionData
from kohort.log.names import TopicPartition
from tests.golden_sets import GOLDEN, GoldenSet
from tests.group.context import INITIAL_DELAY, Context
from tests.group.log_builder import StoredTopic

every_set = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
sets_with_newer_groups = pytest.mark.parametrize(
    "golden", [GoldenSet("kafka-4.0.0"), GoldenSet("kafka-4.1.0")], ids=lambda golden: golden.name
)


def load(golden: GoldenSet) -> Context:
    """A coordinator that owns every partition of the set."""
    told = golden.state()
    clock = VirtualClock(told["captured_at_ms"])
    segments = {
        partition: [(int(path.stem), path.read_bytes()) for path in paths]
        for partition, paths in golden.partitions().items()
    }
    number = told["offsets_topic_partitions"]
    c = Context(
        topic=StoredTopic(clock, segments, read_size=700),
        clock=clock,
        own=False,
        offsets_topic_num_partitions=number,
        group_max_size=100,
        group_max_session_timeout_ms=1_800_000,
    )
    for partition in range(number):
        c.elect(partition)
    assert list(c.manager.partitions) == list(range(number))
    return c


def answers_of(group: dict[str, Any], *, with_epochs: bool) -> dict[TopicPartition, PartitionData]:
    """OffsetFetch of everything, as the broker has answered it."""
    return {
        TopicPartition(told["topic"], told["partition"]): PartitionData(
            told["offset"], told["leader_epoch"] if with_epochs else -1, told["metadata"]
        )
        for told in group.get("offsets", ())
    }


@every_set
def test_offsets_are_those_that_the_running_broker_answered(golden: GoldenSet) -> None:
    c = load(golden)
    with_epochs = golden.name != "kafka-2.6.3-ibp-0.10.0"  # its value version has no room for them
    for group in golden.state()["groups"]:
        told = answers_of(group, with_epochs=with_epochs)
        assert c.fetch_all(group["group_id"]) == (ErrorCode.NONE, told)
        assert group["offsets_partition"] == c.partition(group["group_id"])


@every_set
def test_the_groups_are_those_that_have_a_record_or_an_offset(golden: GoldenSet) -> None:
    """Those that never had a generation and have no offset left are empty husks: only 4.x keeps them."""
    ours = {group.group_id for group in load(golden).manager.current_groups}
    told = {group["group_id"]: group for group in golden.state_reloaded()["groups"]}
    assert ours <= told.keys()
    for group_id in told.keys() - ours:
        group = told[group_id]
        assert not group.get("generation_in_last_group_metadata_record")
        assert not group.get("members")
        assert not group.get("offsets") or group_id.endswith(".g-txn-pending-delete")


@every_set
def test_classic_groups_and_their_members_are_described_as_by_the_broker(golden: GoldenSet) -> None:
    c = load(golden)
    described = 0
    for group in golden.state_reloaded()["groups"]:
        if group["group_type"] != "classic" or c.find(group["group_id"]) is None:
            continue
        error, ours = c.describe(group["group_id"])
        assert error is ErrorCode.NONE
        assert (ours.state, ours.protocol_type, ours.protocol) == (
            group["state"],
            group["protocol_type"],
            group["protocol"],
        )
        assert {
            (m.member_id, m.client_id, m.client_host, m.group_instance_id, _base64(m.metadata), _base64(m.assignment))
            for m in ours.members
        } == {
            (
                told["member_id"],
                told["client_id"],
                told["client_host"],
                told["group_instance_id"],
                told["metadata_b64"],
                told["assignment_b64"],
            )
            for told in group["members"]
        }
        if (generation := group.get("generation_in_last_group_metadata_record")) is not None:
            assert c.group(group["group_id"]).generation_id == generation
        described += 1
    assert described >= 4


@every_set
def test_partitions_with_an_open_transaction_are_unstable(golden: GoldenSet) -> None:
    c = load(golden)
    for group in golden.state_reloaded()["groups"]:
        _, answers = c.fetch_all(group["group_id"], require_stable=True)
        ours = {
            tuple(partition) for partition, data in answers.items() if data.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
        }
        told = group.get("unstable_partitions", ())
        assert ours == {(p["topic"], p["partition"]) if isinstance(p, dict) else tuple(p) for p in told}


@sets_with_newer_groups
def test_groups_of_newer_kinds_live_on_by_their_offsets(golden: GoldenSet) -> None:
    c = load(golden)
    newer = [group for group in golden.state_reloaded()["groups"] if group["group_type"] != "classic"]
    assert {group["group_type"] for group in newer} >= {"consumer"}
    for told in newer:
        group_id = told["group_id"]
        group = c.find(group_id)
        assert (group is not None) == bool(told.get("offsets"))
        if group is None:
            assert c.describe(group_id)[1].state == "Dead"
            continue
        assert (group.state.value, len(group.members), group.generation_id) == ("Empty", 0, 0)
        joined = c.dynamic_join(group_id)
        assert (joined.error, joined.generation_id) == (ErrorCode.NONE, 1)
        c.sync(group_id, 1, joined.member_id, {joined.member_id: b"all"})
        successor = c.restarted(offsets_topic_num_partitions=c.config.offsets_topic_num_partitions)
        assert successor.describe(group_id)[1].members[0].assignment == b"all"
        assert successor.fetch_all(group_id) == c.fetch_all(group_id)
        assert c.fetch_all(group_id) == (ErrorCode.NONE, answers_of(told, with_epochs=True))


@every_set
def test_loaded_members_can_go_on(golden: GoldenSet) -> None:
    c = load(golden)
    for told in golden.state_reloaded()["groups"]:
        if told["group_type"] != "classic":
            continue
        for member in told["members"]:
            generation = c.group(told["group_id"]).generation_id
            heartbeat = c.heartbeat(
                told["group_id"], member["member_id"], generation, instance=member["group_instance_id"]
            )
            assert heartbeat is ErrorCode.NONE
    c.sleep(1_800_000 + INITIAL_DELAY)
    c.settle(60_000)
    assert {group.state.value for group in c.manager.current_groups} == {"Empty"}


def _base64(blob: bytes) -> str:
    return base64.b64encode(blob).decode()
