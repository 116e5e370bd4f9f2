"""The consumer with a real broker in each test: what it does alone, in a group, late, and when a commit fails."""

from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kitchen import Kitchen

PATIENCE_S = 60


@pytest.fixture
def servers(kohort_broker):
    kohort_broker.create_topic("orders", partitions=2)
    return kohort_broker.bootstrap_servers


def order(servers, *dishes):
    producer = Producer({"bootstrap.servers": servers})
    for number, dish in enumerate(dishes):
        producer.produce("orders", dish.encode(), partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0


def test_orders_are_counted_once_across_a_restart(servers):
    order(servers, "soup", "soup")
    counted = 0
    for _ in range(2):
        with closing(Kitchen(servers)) as kitchen:
            assert kitchen.cook(PATIENCE_S)
            counted += kitchen.dishes["soup"]
    assert counted == 2


def test_a_second_cook_takes_over_half_and_gives_it_back(servers, kohort_broker):
    def shares():
        group = kohort_broker.groups().get("kitchen")
        return sorted(len(member.partitions) for member in group.members) if group and group.state == "Stable" else []

    with closing(Kitchen(servers)) as first:
        while shares() != [2]:
            first.cook(0.05)  # a member that does not poll takes no part in a rebalance
        with closing(Kitchen(servers)) as second:
            while shares() != [1, 1]:
                first.cook(0.05)
                second.cook(0.05)
        while shares() != [2]:
            first.cook(0.05)
        assert kohort_broker.groups()["kitchen"].generation == 3


def test_a_commit_that_fails_is_told_and_the_order_comes_again(servers, kohort_broker):
    order(servers, "soup")
    with closing(Kitchen(servers)) as kitchen:
        kohort_broker.fail_next("OffsetCommit", "OFFSET_METADATA_TOO_LARGE")
        with pytest.raises(KafkaException, match="OFFSET_METADATA_TOO_LARGE"):
            kitchen.cook(PATIENCE_S)
    with closing(Kitchen(servers)) as kitchen:
        assert kitchen.cook(PATIENCE_S)
        assert kitchen.dishes["soup"] == 1


def test_after_a_week_away_the_group_is_forgotten(servers, kohort_broker, kohort_cluster_clock):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "kitchen"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 42)], asynchronous=False)
    kohort_cluster_clock.advance(6 * 24 * 3_600_000)
    assert kohort_broker.groups()["kitchen"].offsets["orders", 0].offset == 42
    kohort_cluster_clock.advance(2 * 24 * 3_600_000)
    assert "kitchen" not in kohort_broker.groups()
    consumer.close()
