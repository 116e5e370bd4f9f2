"""Segments of `__consumer_offsets` of one broker under the other: all groups and offsets are there.

Each broker is given some groups and asked about them. Then both are stopped, their partitions of the offsets topic
change places, and each is asked again: it answers what the other did, member ids and all.
"""

import shutil
import time
from pathlib import Path
from typing import Any

from tests.broker.wire_client import WireClient

from oracle.apis import Api
from oracle.having import Fields
from oracle.member import Member, stable_pair
from oracle.plain import Names, flat
from oracle.sequences.txn_offset_commit import Producer, fetch_until_stable
from oracle.talk import Talk
from oracle.written import OFFSETS_TOPIC

_LONG = 60_000
_LONGEST = 600_000
"""Neither side aborts what is open: their producers have the same ids, and a marker of one would end the other's."""
_GROUPS = ("stable", "static", "emptied", "offsets", "committed", "aborted", "open", "deleted", "größe", "connect")


def stock(port: int) -> Fields:
    """Give a broker groups of every kind; returns what it tells of them."""
    with Talk(port, "stock") as talk:
        _members(talk)
        _offsets(talk)
    return tell(port)


def _members(talk: Talk) -> None:
    stable_pair(
        talk,
        first=Member(talk, "a", group="stable", session=_LONG),
        second=Member(talk, "b", group="stable", session=_LONG),
    )
    Member(talk, "c", group="static", instance="one", session=_LONG).settle()
    emptied = Member(talk, "d", group="emptied")
    emptied.settle()
    emptied.commit((0, 1), (2, 2))
    emptied.leave()
    Member(talk, "e", group="größe", session=_LONG).settle()
    Member(talk, "f", group="connect", session=_LONG, protocol_type="connect", protocols=(("x", b"\0\1"),)).settle()


def _offsets(talk: Talk) -> None:
    plain = Member(talk, group="offsets")
    for offset in range(50):
        plain.commit((offset % 3, offset))
    plain.commit((0, 77), version=2, retention_time=86_400_000)
    plain.delete_offsets(1)
    for group, is_commit in (("committed", True), ("aborted", False), ("open", None)):
        producer, member = Producer(talk, group, group=group, timeout=_LONGEST), Member(talk, group=group)
        member.commit((1, 11))
        producer.begin()
        producer.commit_offsets((0, 5), (1, 6))
        if is_commit is not None:
            producer.end(commit=is_commit)
            fetch_until_stable(member, 0, 1)
            producer.until_ended()
    deleted = Member(talk, group="deleted")
    deleted.commit((0, 1))
    deleted.delete_group()


def tell(port: int) -> Fields:
    """What a broker says of the groups, as it is: nothing is to be different."""
    answers: dict[str, Any] = {}
    plain = Names(port, keeps_members=True).plain
    with WireClient(port) as client:
        _await_loaded(client)
        for group in _GROUPS:
            answers[f"describe {group}"] = plain(client.ask(Api.DESCRIBE_GROUPS, 5, groups=(group,)))
            for is_stable in (False, True):
                fetched = client.ask(Api.OFFSET_FETCH, 7, group_id=group, topics=None, require_stable=is_stable)
                answers[f"offsets {group}, stable {is_stable}"] = plain(fetched)
    return flat(answers)


def _await_loaded(client: WireClient) -> None:
    deadline = time.monotonic() + 60
    while client.ask(Api.DESCRIBE_GROUPS, 5, groups=("stable",)).groups[0].error_code.value:
        if time.monotonic() > deadline:
            raise TimeoutError("the groups are not loaded")
        time.sleep(0.05)


def change_places(one: Path, other: Path) -> None:
    """The partition of the offsets topic under two data directories.

    How far it was synced is noted in files beside it. They go too: a log that ends before that point is damaged, and
    kohort would refuse it.
    """
    place = f"{OFFSETS_TOPIC}-0"
    aside = one / "aside"
    shutil.move(one / place, aside)
    shutil.move(other / place, one / place)
    shutil.move(aside, other / place)
    for directory in (one, other):
        for checkpoint in directory.glob("*-offset-checkpoint"):
            checkpoint.unlink()
