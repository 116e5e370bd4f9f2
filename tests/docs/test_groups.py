"""The page about `kohort groups` does what it says: its commands are run, and print what it shows."""

import re
import subprocess
import sys
from pathlib import Path

from kohort.cli.groups import groups
from tests.cli.group_scenes import commit, told_broker

PAGE = Path(__file__).parents[2] / "docs" / "groups.md"
KOHORT = Path(sys.executable).with_name("kohort")
PATIENCE_S = 600
STEPS = re.findall(r"^\$ kohort (.*)\n((?:(?!\$ |```).*\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_shows_every_command() -> None:
    assert {command.split()[1] for command, _ in STEPS} == set(groups.commands)


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    with told_broker() as broker:
        commit(broker, "billing", {0: 10, 1: 3})
        commit(broker, "old-billing", {0: 1})
        for command, shown in STEPS:
            words = command.replace("localhost:9092", broker.bootstrap_servers).split()
            done = subprocess.run(
                [KOHORT, *words],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE_S,
            )
            assert done.returncode == 0, done.stdout
            assert lines(done.stdout) == lines(shown), command


def lines(text: str) -> list[str]:
    """Two streams come in whatever order they like; empty lines part them."""
    return sorted(line for line in text.splitlines() if line)
