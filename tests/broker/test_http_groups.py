"""`/groups.json`: groups, their members, what these own, and how far they lag behind."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kohort.broker.http.rebalances import RecentRebalances
from kohort.clock import VirtualClock
from kohort.group.group_metadata import GroupMetadata
from kohort.group.requests import GroupId
from tests.broker.data_plane import TOPIC, make_topic
from tests.broker.group_clients import JOIN_GROUP, commit, find_coordinator, join, join_request, leave, settle, sync
from tests.broker.http_port import http_of
from tests.broker.running import running

GROUP = "readers"
HOSTILE = '<img src=x onerror="alert(1)">\u202e\x00\n\\"]}'
MINUTE_MS = 60_000
PATIENCE_S = 30.0


def test_a_group_is_told_with_its_members_their_partitions_and_its_lag() -> None:
    with running() as broker, http_of(broker) as http:
        make_topic(broker, TOPIC, 2)

        async def story() -> None:
            async with AIOKafkaProducer(bootstrap_servers=broker.address) as producer:
                for _ in range(5):
                    await producer.send_and_wait(TOPIC, b"x", partition=0)
            async with AIOKafkaConsumer(
                TOPIC,
                bootstrap_servers=broker.address,
                group_id=GROUP,
                client_id="reader-1",
                enable_auto_commit=False,
            ) as consumer:
                await consumer.commit({TopicPartition(TOPIC, 0): 2})
                group = await asyncio.to_thread(http.group, GROUP)
                numbers = {"generation": 1, "member_count": 1, "partition_count": 1, "lag": 3}
                assert numbers.items() <= group.items()
                assert (group["id"], group["state"], group["protocol_type"]) == (GROUP, "Stable", "consumer")
                assert (group["protocol"], group["rebalances_last_hour"]) == ("roundrobin", 1)
                (member,) = group["members"]
                assert (member["client_id"], member["client_host"]) == ("reader-1", "/127.0.0.1")
                assert member["instance_id"] is None
                assert member["owned"] == [{"topic": TOPIC, "partitions": [0, 1]}]
                assert group["leader"] == member["member_id"]
                keys = ("topic", "partition", "committed_offset", "log_end_offset", "lag", "owner")
                assert [tuple(one[key] for key in keys) for one in group["partitions"]] == [
                    (TOPIC, 0, 2, 5, 3, member["member_id"]),
                    (TOPIC, 1, None, 0, None, member["member_id"]),
                ]
            group = await asyncio.to_thread(http.group, GROUP)
            assert (group["state"], group["members"], group["lag"]) == ("Empty", [], 3)

        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def test_a_static_member_is_told_with_its_instance_id() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        find_coordinator(client, GROUP)
        answer = client.ask(JOIN_GROUP, 5, **join_request(GROUP, TOPIC, group_instance_id="host-7"))
        assert answer.error_code == 0
        (member,) = http.group(GROUP)["members"]
        assert member["instance_id"] == "host-7"


def test_only_a_stable_group_has_owners() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        join(client, GROUP, TOPIC)
        group = http.group(GROUP)
        assert group["state"] == "CompletingRebalance"
        assert group["members"][0]["owned"] is None


@pytest.mark.parametrize("blob", [b"\x00", b"\x00\x00\x7f\xff\xff\xff", b"anything"])
def test_what_is_no_assignment_is_told_as_unknown(blob: bytes) -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        find_coordinator(client, GROUP)
        joined = join(client, GROUP, TOPIC)
        sync(client, GROUP, joined, {joined.member_id: blob})
        assert http.group(GROUP)["members"][0]["owned"] is None


def test_a_group_of_another_kind_keeps_its_assignment_to_itself() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        settle(client, GROUP, TOPIC, 0, protocol_type="connect")
        group = http.group(GROUP)
        assert (group["state"], group["protocol_type"]) == ("Stable", "connect")
        assert group["members"][0]["owned"] is None


def test_the_lag_for_a_topic_that_is_gone_is_unknown_and_beyond_the_end_there_is_none() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        assert commit(client, GROUP, TOPIC, {0: 9}) == 0
        assert http.group(GROUP)["lag"] == 0
        broker.on_loop(lambda: broker.broker.topics.delete(broker.broker.topics.get(TOPIC)))
        group = http.group(GROUP)
        assert (group["lag"], group["partitions"][0]["log_end_offset"]) == (None, None)


def test_all_groups_are_told_in_full_or_in_numbers() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        settle(client, GROUP, TOPIC, 0)
        commit(client, "keeper", TOPIC, {0: 0})
        full = http.get("/groups.json").json
        assert full["address"] == broker.address
        assert {group["id"]: len(group["members"]) for group in full["groups"]} == {GROUP: 1, "keeper": 0}
        summary = http.get("/groups.json?view=summary").json
        assert {group["id"]: group["member_count"] for group in summary["groups"]} == {GROUP: 1, "keeper": 0}
        assert "members" not in summary["groups"][0]


def test_a_group_that_is_not_there_is_not_found() -> None:
    with running() as broker, http_of(broker) as http:
        assert http.get("/groups.json?group=nobody").status == 404


@pytest.mark.parametrize("group_id", ["", HOSTILE, "ü" * 16_383, "&view=summary#?"])
def test_whatever_id_a_group_has_it_can_be_asked_for(group_id: str) -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        assert commit(client, group_id, TOPIC, {0: 0}) == 0
        assert http.group(group_id)["id"] == group_id
        (told,) = http.get("/groups.json").json["groups"]
        assert told["id"] == group_id


def test_others_are_served_while_many_groups_are_told() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker, TOPIC, 20)
        find_coordinator(client, GROUP)
        for number in range(500):
            commit(client, f"group-{number}", TOPIC, dict.fromkeys(range(20), 0))
        turns = 0
        is_over = False

        def count_turns() -> None:
            nonlocal turns
            turns += 1
            if not is_over:
                broker.loop.call_soon(count_turns)

        broker.on_loop(count_turns)
        http.get("/healthz")
        before = turns
        http.get("/healthz")
        idle = turns - before
        told = http.get("/groups.json").json["groups"]
        is_over = True
        assert len(told) == 500
        assert turns - before - idle >= 5


def test_rebalances_are_counted_for_each_group() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        for _ in range(3):
            leave(client, GROUP, settle(client, GROUP, TOPIC, 0))
        settle(client, "others", TOPIC, 0)
        assert http.group(GROUP)["rebalances_last_hour"] == 3
        assert http.group("others")["rebalances_last_hour"] == 1


def test_rebalances_of_more_than_an_hour_ago_are_forgotten() -> None:
    clock = VirtualClock()
    recent = RecentRebalances(clock)
    first, second = (GroupMetadata(GroupId(name), clock) for name in ("first", "second"))
    for _ in range(40):
        recent.on_rebalance(first)
        recent.on_rebalance(first)
        clock.advance(MINUTE_MS)
    assert recent.count(first.group_id) == 80
    clock.advance(30 * MINUTE_MS)
    assert recent.count(first.group_id) == 58
    assert recent.count(second.group_id) == 0
    clock.advance(60 * MINUTE_MS)
    assert recent.count(first.group_id) == 0
    recent.on_rebalance(second)
    assert len(recent) == 1
