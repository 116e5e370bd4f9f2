"""Groups that grow and shrink, and members that come back to the place they had."""

import itertools

import pytest

from tests_clients.kinds import KINDS, Can, with_clients
from tests_clients.scene import Member, Scene

PARTITIONS = 12
TOPICS = {"orders": PARTITIONS}


def everything(count: int) -> list[str]:
    return sorted(f"{partition}-{number}" for partition in range(PARTITIONS) for number in range(count))


def produce(scene: Scene, *numbers: int) -> None:
    for partition in range(PARTITIONS):
        scene.produce("orders", [f"{partition}-{number}" for number in numbers], partition)


def grow_and_shrink(scene: Scene, assignor: str) -> list[Member]:
    """From one member to ten and back to one; each settled group goes on where the one before it has committed."""
    scene.create_topic("orders", PARTITIONS)
    produce(scene, 0)
    first = scene.open("g", "orders", assignor=assignor)
    alone = scene.settle([first], TOPICS)
    first.values(PARTITIONS)
    first.commit()

    others = [scene.open("g", "orders", assignor=assignor) for _ in range(9)]
    members = [first, *others]
    # Members that gave something up join once more, and it may be a while until the last of them has.
    scene.settle(members, TOPICS)
    scene.until(lambda: scene.client.call("group", group="g") == {"state": "Stable", "members": 10})
    together = scene.settle(members, TOPICS)
    assert together > alone
    produce(scene, 1)
    scene.client.wait(
        lambda: sorted(one.value for member in members for one in member.seen) == everything(2),
        "records of ten members, each once",
    )
    for member in members:
        member.commit("by ten")
    assert scene.offsets("g") == {("orders", partition): (2, "by ten") for partition in range(PARTITIONS)}

    for member in others:
        member.close()
    assert scene.settle([first], TOPICS) > together
    before = len(first.seen)
    produce(scene, 2)
    scene.client.wait(lambda: len(first.seen) >= before + PARTITIONS, "records for the one that is left")
    assert sorted(one.value for one in first.seen[before:]) == [f"{number}-2" for number in sorted(map(str, range(12)))]
    return members


@with_clients()
def test_a_group_grows_to_ten_members_and_back_to_one(scene: Scene) -> None:
    grow_and_shrink(scene, scene.kind.eager)


@with_clients(Can.COOPERATIVE_STICKY)
def test_cooperative_members_keep_what_they_need_not_give_up(scene: Scene) -> None:
    first, *_ = grow_and_shrink(scene, "cooperative-sticky")
    # Ten members share twelve partitions: who had them all keeps one or two of them through every rebalance.
    owned = [told.partitions for told in first.history if told.partitions]
    assert [told.partitions for told in first.history][-len(owned) :] == owned
    assert all(before & after for before, after in itertools.pairwise(owned))


@with_clients(Can.STATIC_MEMBERS)
def test_static_members_that_restart_find_what_they_had_without_a_rebalance(scene: Scene) -> None:
    scene.create_topic("orders", PARTITIONS)
    left, right = scene.start_client(), scene.start_client()
    members = {
        f"static-{number}": scene.open(
            "g", "orders", client=client, instance=f"static-{number}", assignor=scene.kind.eager
        )
        for number, client in enumerate([left, left, right, right])
    }
    generation = scene.settle(members.values(), TOPICS)
    owned = {instance: member.owned for instance, member in members.items()}

    # One of the two processes has the leader of the group; each is killed in turn.
    for died in (right, left):
        untouched = [(member, len(member.history)) for member in members.values() if member.client is not died]
        scene.kill_client(died)
        client = scene.start_client()
        for instance, member in members.items():
            if member.client is died:
                members[instance] = scene.open("g", "orders", client=client, instance=instance)
        assert scene.settle(members.values(), TOPICS) == generation
        assert {instance: member.owned for instance, member in members.items()} == owned
        # Those that stayed were told of no other generation, not even for a moment.
        assert all(len(member.history) == told for member, told in untouched)
        produce(scene, 0)
        scene.client.wait(
            lambda: sum(len(member.seen) for member in members.values()) >= PARTITIONS, "records after a restart"
        )

    for instance in sorted(members):
        members[instance].close()
    assert scene.client.call("group", group="g") == {"state": "Stable", "members": 4}
    for instance in sorted(members):
        scene.client.call("remove_static_member", group="g", instance=instance)
    assert scene.client.call("group", group="g") == {"state": "Empty", "members": 0}


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@with_clients(Can.COOPERATIVE_STICKY)
def test_members_of_several_clients_share_a_group(scene: Scene, assignor: str) -> None:
    """The first to come leads the group: its client assigns partitions to members of all others."""
    scene.create_topic("orders", PARTITIONS)
    members = [scene.open("g", "orders", assignor=assignor)]
    scene.settle(members, TOPICS)
    for other in KINDS:
        if other is not scene.kind and Can.COOPERATIVE_STICKY in other.can and not other.toolchain.missing():
            client = scene.start_client(other)
            members.append(scene.open("g", "orders", client=client, assignor=assignor))
    scene.settle(members, TOPICS)
    produce(scene, 0)
    seen = everything(1)
    scene.client.wait(lambda: sorted(one.value for member in members for one in member.seen) == seen, "each record")
    # The next one leads what is left.
    members.pop(0).close()
    scene.settle(members, TOPICS)
