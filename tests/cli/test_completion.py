"""Shell completion, as a shell asks for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import run_main

BIN = Path(sys.executable).parent


def completed(tmp_path: Path, line: str) -> list[str]:
    """What bash offers behind a line, with the function that the script has defined."""
    script = f"""
        eval "$(kohort completion bash)"
        COMP_WORDS=({line}) COMP_CWORD=$(({len(line.split())} - 1))
        compopt() {{ echo "compopt" "$@" | tr ' ' _; }}
        _kohort_completion kohort
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kohort re", ["report", "restore"]),
        ("kohort groups de", ["delete", "delete-offsets", "describe"]),
        ("kohort dump x --for", ["--format"]),
        ("kohort dump x --format j", ["jsonl"]),
        ("kohort state x --rule ''", ["position", "kafka-2.6"]),
        ("kohort state /va", ["compopt_-o_default", ""]),
        ("kohort serve --data /va", ["compopt_-o_default", ""]),
        ("kohort completion ''", ["bash", "zsh", "fish"]),
    ],
)
def test_bash_completes_commands_options_choices_and_files(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert sorted(completed(tmp_path, line)) == sorted(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    done = run_main("completion", shell)
    assert (done.code, done.stderr) == (0, "")
    assert f"_KOHORT_COMPLETE={shell}_complete" in done.stdout
