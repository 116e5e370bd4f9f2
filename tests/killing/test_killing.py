"""SIGKILL in the middle of commits and transactions: what was acknowledged is there, what was aborted is not."""

from pathlib import Path

import pytest

from tests.killing.go_clients import missing
from tests.killing.killed import KilledBroker
from tests.killing.run import run
from tests.slow import slow


@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=slow)])
def test_a_broker_that_is_killed_loses_nothing(tmp_path: Path, kills: int) -> None:
    told = run(KilledBroker(tmp_path / "data"), kills=kills, seed=1, with_go=missing() is None)
    for heard in told.clients.values():
        assert heard.acknowledged > 20, told
