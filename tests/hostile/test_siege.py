"""Hostile peers, a few of each and for seconds; `make hostile` is the whole of it.

Sessions of six seconds are counted, so nobody else may be at work meanwhile: `make test` runs it when the rest is done.
"""

from pathlib import Path

import pytest

from tests.hostile.attacks import (
    MIB,
    announced,
    bombing,
    coming_and_going,
    half_a_handshake,
    joining,
    silent,
    slow_loris,
    wrong_passwords,
)
from tests.hostile.siege import SASL_PLAINTEXT, SSL, besieged

SETTINGS = {
    "request.receive.timeout.ms": "1000",
    "connection.setup.timeout.ms": "1000",
    "max.connections.half.open": "50",
    "queued.max.request.bytes": str(64 * MIB),
    "group.max.bytes": str(8 * MIB),
}
MOST_MIB = 500


@pytest.mark.alone
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_a_group_of_real_consumers_notices_nothing_of_hostile_peers(tmp_path: Path) -> None:
    with besieged(tmp_path / "siege", SETTINGS) as siege:
        loris = siege.endure("slow-loris", slow_loris(50, 3)).outcome
        assert loris.ended == loris.opened == 50
        quiet = siege.endure("silent", silent(200, 3)).outcome
        assert quiet.opened == 200
        assert quiet.ended >= 100  # in rounds of 50, a second each
        siege.endure("coming and going", coming_and_going(400))
        lies = siege.endure("announced", announced(50, 3)).outcome
        assert lies.ended == 50
        assert siege.endure("bombs", bombing(1)).outcome.told.endswith(" 0 taken")
        refused = siege.endure("joining", joining(3, 20 * MIB)).outcome
        assert refused.told == "3 times error 81"
        half = siege.endure("half a TLS handshake", half_a_handshake(60, 3), SSL).outcome
        assert half.ended == half.opened == 60
        assert siege.endure("wrong passwords", wrong_passwords(60), SASL_PLAINTEXT).outcome.told == "0 of 60 got in"
        assert [one.complaints for one in siege.rounds] == [[]] * len(siege.rounds)
        assert max(one.newcomer_ms for one in siege.rounds) < 10_000
        assert siege.most_mib() < MOST_MIB
