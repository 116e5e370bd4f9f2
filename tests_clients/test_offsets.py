"""Commits by hand and by themselves, with metadata; readers that go on where they were, and readers that do not."""

import signal
from functools import partial

from tests_clients.client import Refused
from tests_clients.kinds import with_clients
from tests_clients.scene import Member, Scene

TEN, TWENTY = [f"a{n}" for n in range(10)], [f"b{n}" for n in range(10)]


@with_clients()
def test_a_commit_keeps_its_metadata(scene: Scene) -> None:
    scene.create_topic("orders", 2)
    scene.produce("orders", TEN, 0)
    scene.produce("orders", TWENTY[:4], 1)
    member = scene.open("g", "orders")
    member.values(14)
    member.commit("as of the evening")
    assert scene.offsets("g") == {("orders", 0): (10, "as of the evening"), ("orders", 1): (4, "as of the evening")}
    scene.produce("orders", ["one more"], 1)
    member.values(15)
    member.commit("and ünïcödé")
    assert scene.offsets("g")["orders", 1] == (5, "and ünïcödé")


@with_clients()
def test_offsets_are_committed_by_themselves(scene: Scene) -> None:
    scene.create_topic("orders")
    scene.produce("orders", TEN)
    member = scene.open("g", "orders", auto_commit=True)
    member.values(10)
    scene.until(lambda: scene.offsets("g").get(("orders", 0), (0, ""))[0] == 10)
    scene.produce("orders", TWENTY)
    scene.until(lambda: scene.offsets("g")["orders", 0][0] == 20)
    assert member.values(20) == TEN + TWENTY


@with_clients()
def test_a_group_goes_on_where_it_was_after_its_client_and_its_broker_were_gone(scene: Scene) -> None:
    scene.create_topic("orders")
    scene.produce("orders", TEN)
    before = scene.start_client()
    member = scene.open("g", "orders", client=before, session_ms=3000)
    assert member.values(10) == TEN
    member.commit("so far")
    scene.produce("orders", TWENTY)
    assert member.values(20) == TEN + TWENTY

    scene.kill_client(before)
    for how in (signal.SIGTERM, signal.SIGKILL):
        scene.broker.restart(how)
        assert scene.offsets("g") == {("orders", 0): (10, "so far")}
    # The member that was killed said no goodbye; its place is given away when its session is over.
    again = scene.open("g", "orders", client=scene.start_client())
    assert again.values(10) == TWENTY


def is_committed(scene: Scene, members: list[Member], number: int) -> bool:
    """Whether the commits of all members are as they should be after a round.

    Clients join anew when they have lost their last connection, even to the same broker, and then read again what they
    had not committed: until then their commits are refused or too low.
    """
    try:
        for member in members:
            member.commit(f"in round {number}")
    except Refused:
        return False
    return list(scene.offsets("g").values()) == [(number + 1, f"in round {number}")] * 4


@with_clients()
def test_members_that_stay_do_not_lose_their_group_when_the_broker_restarts(scene: Scene) -> None:
    scene.create_topic("orders", 4)
    # KafkaJS comes back as another member: its old one is given up when its session is over.
    members = [scene.open("g", "orders", session_ms=5000) for _ in range(2)]
    generation = scene.settle(members, {"orders": 4})
    for number, how in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        for partition in range(4):
            scene.produce("orders", [f"{partition}-{number}"], partition)
        seen = sorted(f"{partition}-{done}" for partition in range(4) for done in range(number + 1))
        scene.client.wait(
            lambda seen=seen: sorted({one.value for member in members for one in member.seen}) == seen, f"all of {seen}"
        )
        scene.until(partial(is_committed, scene, members, number))
        scene.broker.restart(how)
    assert scene.settle(members, {"orders": 4}) >= generation
    assert scene.client.call("group", group="g")["members"] == 2


@with_clients()
def test_a_member_seeks(scene: Scene) -> None:
    scene.create_topic("orders")
    scene.produce("orders", TEN)
    member = scene.open("g", "orders")
    assert member.values(10) == TEN
    member.seek("orders", 0, 3)
    assert member.values(17) == TEN + TEN[3:]
    member.seek("orders", 0, 9)
    assert member.values(18) == TEN + TEN[3:] + TEN[9:]
