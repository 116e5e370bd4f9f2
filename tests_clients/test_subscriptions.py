"""Topics by a pattern."""

from tests_clients.kinds import Can, with_clients
from tests_clients.scene import Scene


@with_clients(Can.REGEX)
def test_a_pattern_finds_the_topics_that_match(scene: Scene) -> None:
    for topic in ("orders-de", "orders-fr", "returns-de"):
        scene.create_topic(topic, 2)
        scene.produce(topic, [f"in {topic}"])
    members = [scene.open("g", pattern="^orders-.*") for _ in range(2)]
    scene.settle(members, {"orders-de": 2, "orders-fr": 2})
    seen = ["in orders-de", "in orders-fr"]
    scene.client.wait(lambda: sorted({one.value for member in members for one in member.seen}) == seen, "both")


@with_clients(Can.REGEX_FOLLOWS)
def test_a_pattern_finds_topics_that_are_made_later(scene: Scene) -> None:
    scene.create_topic("orders-de")
    member = scene.open("g", pattern="^orders-.*")
    scene.settle([member], {"orders-de": 1})
    scene.create_topic("orders-it", 3)
    scene.settle([member], {"orders-de": 1, "orders-it": 3})
    scene.client.call("delete_topic", topic="orders-it")
    scene.settle([member], {"orders-de": 1})


@with_clients()
def test_a_group_takes_in_partitions_that_are_added(scene: Scene) -> None:
    scene.create_topic("orders", 2)
    members = [scene.open("g", "orders") for _ in range(2)]
    scene.settle(members, {"orders": 2})
    scene.client.call("create_partitions", topic="orders", partitions=6)
    scene.settle(members, {"orders": 6})
