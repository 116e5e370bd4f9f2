"""One target, fuzzed by a process of its own for some time, and what came of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fuzzing.choice import choose
from tests.fuzzing.corpus import keep
from tests.fuzzing.target import LONGEST_INPUT, Target

_TOP = Path(__file__).parents[2]
_ROOT = _TOP / "build" / "fuzzing"
_PATIENCE_S = 600
"""Beyond the time that a run was given: a machine may be busy with other things for a while."""
_MOST_MIB = 4096
_STATISTIC = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_COVERAGE = re.compile(r"cov: (\d+)")
_CHATTER = ("#", "INFO:", "WARNING:", "stat::")
_TAIL = 60


class Campaign:
    """Works in a directory under `build`, where interesting inputs and failures are left."""

    def __init__(self, target: Target, seconds: int) -> None:
        self._target, self._seconds = target, seconds
        self._place = _ROOT / target.name
        self._found, self._seeds = self._place / "found", self._place / "seeds"
        self._output, self._is_well = "", False

    def run(self) -> bool:
        """Whether all went well."""
        shutil.rmtree(self._place, ignore_errors=True)
        self._found.mkdir(parents=True)
        self._seeds.mkdir()
        for number, seed in enumerate(self._target.inputs()):
            (self._seeds / f"{number:05}").write_bytes(seed)
        done = self._engine(f"-max_total_time={self._seconds}", str(self._found), str(self._seeds))
        self._is_well = done.returncode == 0
        self._output = done.stdout
        return self._is_well

    def keep(self) -> int:
        """What is worth keeping of all inputs becomes the corpus. Returns how many these are."""
        found = [path.read_bytes() for path in self._found.iterdir()]
        return keep(self._target.name, choose(self._target, [*found, *self._target.inputs()]))

    def told(self) -> str:
        """A line, or what happened and how to repeat it."""
        name = self._target.name
        if self._is_well:
            runs, covered = _STATISTIC.search(self._output), _COVERAGE.findall(self._output)
            return (
                f"{name}: {int(runs[1]) if runs else 0:,} inputs, {covered[-1] if covered else 0} branches, no failure"
            )
        lines = [line for line in self._output.splitlines() if not line.startswith(_CHATTER)]
        end = "\n".join(lines[-_TAIL:])
        failures = sorted(path for path in self._place.iterdir() if path.is_file())
        repeat = "\n".join(
            f"to repeat it: python -m tests.fuzzing {name} --repeat {path.relative_to(_TOP)}" for path in failures
        )
        return f"{end}\n{name}: FAILED\n{repeat}"

    def _engine(self, *options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.fuzzing.engine",
                self._target.name,
                f"-max_len={LONGEST_INPUT}",
                f"-artifact_prefix={self._place}/",
                f"-rss_limit_mb={_MOST_MIB}",
                f"-timeout={_PATIENCE_S}",
                "-print_final_stats=1",
                *options,
            ],
            cwd=_TOP,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=self._seconds + _PATIENCE_S,
            check=False,
        )
