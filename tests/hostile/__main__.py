"""`make hostile`: floods, slow-loris, bombs and lies, with figures. Exit code 1 if the group or the memory suffered."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from kohort.cli.open_files import raise_open_files_limit
from tests.hostile.attacks import (
    MIB,
    Attack,
    announced,
    bombing,
    coming_and_going,
    half_a_handshake,
    joining,
    silent,
    slow_loris,
    wrong_passwords,
)
from tests.hostile.siege import SASL_PLAINTEXT, SSL, besieged, shown

SETTINGS = {"queued.max.request.bytes": str(256 * MIB)}
MOST_MIB = 1_536
"""256 MiB are for requests and 256 for members (`group.coordinator.max.bytes`), and each of them is copied up to twice:
when a request is cut off from what follows it, and when a leader hears of its members."""


def attacks() -> Iterator[tuple[str, Attack]]:
    yield "nothing, for comparison", silent(0, 10)
    yield "slow-loris, a byte a second", slow_loris(500, 40)
    yield "connections that say nothing", silent(6_000, 20)
    yield "connections that come and go", coming_and_going(10_000)
    yield "100 MiB announced, nothing sent", announced(500, 40)
    yield "bombs", bombing(10)
    yield "JoinGroup of 100 MiB", joining(10, 100 * MIB - 1_000)
    yield "JoinGroup of 20 MiB, 30 at once", joining(30, 20 * MIB, at_once=30)


def main() -> int:
    raise_open_files_limit()
    with tempfile.TemporaryDirectory() as place, besieged(Path(place) / "siege", SETTINGS) as siege:
        for name, attack in attacks():
            siege.endure(name, attack)
        siege.endure("half a TLS handshake", half_a_handshake(3_000, 20), SSL)
        siege.endure("wrong passwords", wrong_passwords(10_000), SASL_PLAINTEXT)
    for line in shown(siege.rounds):
        click.echo(line)
    most = siege.rounds[-1].most_mib
    click.echo(f"the broker had {most:,.0f} MiB at most, {MOST_MIB:,} are allowed")
    suffered = [one for one in siege.rounds if one.complaints]
    click.echo("the group noticed nothing" if not suffered else f"the group noticed {len(suffered)} attacks")
    return 1 if suffered or most > MOST_MIB else 0


if __name__ == "__main__":
    sys.exit(main())
