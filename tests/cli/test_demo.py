"""The README's commands."""

import re
from pathlib import Path

from tests.cli.conftest import Run
from tests.golden_sets import ROOT


def test_every_command_in_the_readme_is_one(kohort: Run) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    named = set(re.findall(r"`?kohort (\w+)", readme)) - {"is", "ready"}
    listed = set(re.findall(r"^  (\w+)  ", kohort("--help").stdout, re.MULTILINE))
    assert named <= listed
    for command in listed:
        assert kohort(command, "--help").returncode == 0


def test_the_state_in_the_readme_is_that_of_a_golden_log(kohort: Run) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    shown = re.search(r"\$ kohort state \S+\n(.*?)…\n", readme, re.DOTALL)
    assert shown
    rows = [line.split() for line in kohort("state", ROOT / "kafka-2.6.3-ibp-2.6").stdout.splitlines()]
    for line in shown[1].splitlines():
        assert line.split() in rows
