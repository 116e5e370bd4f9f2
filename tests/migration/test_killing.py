"""SIGKILL in the middle of a migration, again and again: in the end everything is there, once, and in its order.

The process dies when the broker gets one of its requests. What becomes of that request is chosen too: it is lost; it
is done, and nobody hears of it; or it is done later, when the next process is at work or is through.
"""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.testing import Broker, Fault
from tests.migration.random_logs import RandomLog
from tests.migration.scenes import copied, migrate, read_all, saved
from tests.slow import slow

APIS = {"Produce": 12, "Fetch": 6, "ListOffsets": 6, "CreateTopics": 1}
"""How many of these requests may pass before the fatal one."""
PATIENCE_S = 120.0


class Life:
    """One process that migrates, and the request at which it dies, if it comes so far."""

    def __init__(self, source: Path, to: Broker, chance: random.Random) -> None:
        self.is_killed = False
        api = chance.choice(["Produce"] * 6 + list(APIS))
        left, fate = chance.randint(0, APIS[api]), chance.choice(["lost", "done", "late"])
        command = [sys.executable, "-m", "kohort.cli.main", "migrate", source, "--to", to.bootstrap_servers]

        def is_the_one(_: Any) -> bool:
            nonlocal left
            left -= 1
            if left >= 0 or self.is_killed:
                return False
            self.is_killed = True
            os.kill(self._process.pid, signal.SIGKILL)
            return True

        self._fault = _order(to, api, fate, is_the_one)
        self._is_late = fate == "late"
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self) -> int:
        _, told = self._process.communicate(timeout=PATIENCE_S)
        if not self.is_killed:
            assert self._process.returncode == 0, told
        self._fault.cancel()
        return self._process.returncode

    def release(self) -> None:
        """What it had asked for last is done now, long after its death."""
        self._fault.release()


def _order(to: Broker, api: str, fate: str, when: Callable[[Any], bool]) -> Fault:
    if fate == "late":
        return to.hold_next(api, when=when)
    return to.drop_next(api, when=when, applied=fate == "done")


def killed_again_and_again(source: Path, logs: dict[str, RandomLog], seed: int, lives: int) -> int:
    """How often it was killed; whatever happened, the copy is right in the end."""
    chance = random.Random(seed)
    kills = 0
    with Broker() as to:
        late: list[Life] = []
        for _ in range(lives):
            life = Life(source, to, chance)
            if late and chance.random() < 0.5:
                late.pop(0).release()
            life.end()
            kills += life.is_killed
            late.append(life)
        done = migrate(source, to)
        assert done.code == 0, done
        for life in late:
            life.release()
        assert migrate(source, to).code == 0
        for name, log in logs.items():
            topic, _, number = name.rpartition("-")
            assert read_all(to, topic, int(number)) == copied(log.visible()), name
    return kills


def test_whenever_it_is_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    logs = saved(tmp_path, {"orders-0": 1, "orders-1": 101})
    assert killed_again_and_again(tmp_path, logs, seed=1, lives=2) == 2


@slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_it_can_be_killed_often(tmp_path: Path, seed: int) -> None:
    logs = saved(tmp_path, {"orders-0": seed, "orders-1": seed + 100, "payments-0": seed + 200}, steps=120)
    assert killed_again_and_again(tmp_path, logs, seed, lives=6) > 1
