"""Runs the code blocks of a page, in order, in one directory, as a reader would.

A block of `console` has commands (`$ `) and what they print: `…` stands for anything in a line, a line of its own for
any lines, and spaces are not counted. They are typed into one bash, with the ports of the page replaced by free ones.
`kohort pipeline`, `report` and `restore` run in this process instead, on the Spark of the tests. A block of `python`
with a title becomes a file of that name, one without is run: with the Spark of the tests, if it speaks of it. `make` is
not run: its target must exist. Comments in front of a block speak to this module:

    <!-- not run: why -->
    <!-- stands for: /what/the/page/says = path/in/the/repository -->
"""

import contextlib
import os
import re
import selectors
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
ON_SPARK = ("pipeline", "report", "restore")
PATIENCE_S = 300.0
_FENCE = re.compile(
    r"(?:^<!-- (?P<said>not run|stands for): (?P<what>.*?) -->\n)?"
    r"^```(?P<kind>\S*)(?P<more>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_NOTICE = re.compile(r"^bash: (?:line \d+: )?\s*\d+ (?:Killed|Terminated) .*\n", re.MULTILINE)
"""What a shell says of a job that was killed, whenever it notices."""
_PORT = re.compile(r"(?<=[\d.]{9}:)9\d{3}\b|(?<=localhost:)9\d{3}\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and what is said in front of it."""

    kind: str
    title: str
    text: str
    not_run: str | None = None
    stands_for: tuple[str, str] | None = None


class WrongBlock(AssertionError):
    """A page promises what does not happen."""


def blocks_of(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer(page):
        title = re.search(r'title="(.*?)"', match["more"])
        said, what = match["said"], match["what"]
        words = tuple(word.strip() for word in what.split("=")) if said == "stands for" else None
        found.append(
            Block(
                match["kind"],
                title[1] if title else "",
                match["text"],
                what if said == "not run" else None,
                (words[0], words[1]) if words else None,
            )
        )
    return found


def commands_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block with the lines that follow it."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif command.endswith("\\"):
            command = f"{command[:-1]}{line.strip()}"
        elif command:
            shown.append(line)
        else:
            raise WrongBlock(f"a console block begins with what no command has printed: {line!r}")
    if command:
        yield command, shown


def is_as_shown(output: str, shown: list[str]) -> bool:
    """Whether the lines of `shown` are the output, `…` being anything."""
    parts = []
    for line in shown:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            words = r"\s*".join(re.escape(word) for word in re.findall(r"…|[^\s…]+", line))
            parts.append(r"[ \t]*" + words.replace(re.escape("…"), r"[^\n]*?") + r"[ \t]*\n")
    told = "".join(f"{line}\n" for line in output.splitlines() if line.strip())
    return re.fullmatch("".join(part for part in parts if part != r"[ \t]*[ \t]*\n"), told) is not None


class Session:
    """One reader of one page: a directory and a bash in it."""

    def __init__(self, directory: Path, spark: object = None) -> None:
        self.directory = directory
        self._spark = spark
        self._ports: dict[str, str] = {}
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
            "PS1": "",
        }
        environment.pop("PYTEST_ADDOPTS", None)
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._number = 0

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._bash.stdin.write(b"kill $(jobs -p) 2> /dev/null; wait\nexit\n")
            self._bash.stdin.close()
        self._bash.stdout.read()
        self._bash.stdout.close()
        self._bash.wait()

    def run(self, block: Block) -> None:
        if block.not_run is not None or block.kind == "text":
            return
        text = self._with_free_ports(block.text)
        if block.stands_for is not None:
            text = text.replace(block.stands_for[0], str(ROOT / block.stands_for[1]))
        if block.kind == "python" and block.title:
            (self.directory / block.title).write_text(text, encoding="utf-8")
        elif block.kind == "python" and "spark" in text:
            exec(compile(text, "block", "exec"), {"spark": self._spark})
        elif block.kind == "python":
            (self.directory / "block.py").write_text(text, encoding="utf-8")
            self._type("python block.py", ["…"])
        elif block.kind == "console":
            for command, shown in commands_of(text):
                self._do(command, shown)
        else:
            raise WrongBlock(f"a block of {block.kind or 'no kind'}: console, python or text are known")

    def _do(self, command: str, shown: list[str]) -> None:
        words = shlex.split(command)
        if words[0] == "make":
            if not re.search(rf"^{re.escape(words[1])}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
                raise WrongBlock(f"{command}: no such target")
        elif words[0] == "kohort" and words[1] in ON_SPARK:
            self._on_spark(command, words[1:], shown)
        else:
            self._type(command, shown)

    def _on_spark(self, command: str, words: list[str], shown: list[str]) -> None:
        """Spark's Java has a directory of its own: what is a path here is made absolute, and short again when told."""
        paths = [words[1], *(word for before, word in pairwise(words) if before == "--out")]
        absolute = [str(self.directory / word) if word in paths and "://" not in word else word for word in words]
        from kohort.cli.main import cli

        done = CliRunner().invoke(cli, absolute)
        output = done.stdout.replace(f"{self.directory}/", "")
        if done.exit_code or not is_as_shown(output, shown):
            raise WrongBlock(f"$ {command}\n{output}{done.stderr}\nexit code {done.exit_code} {done.exception or ''}")

    def _type(self, command: str, shown: list[str]) -> None:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._number += 1
        mark = f"-- {self._number} done: "
        self._bash.stdin.write(f"{command}\nlast=$?; echo; echo '{mark}'$last\n".encode())
        self._bash.stdin.flush()
        output, code, until = "", None, time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._bash.stdout, selectors.EVENT_READ)
            while code is None or not is_as_shown(output, shown):
                waits = command.rstrip().endswith("&") or code is None
                if not waits or not selector.select(until - time.monotonic()):
                    raise WrongBlock(f"$ {command}\n{output}\nexit code {code}; the page shows\n" + "\n".join(shown))
                read = os.read(self._bash.stdout.fileno(), 65536)
                if not read:
                    raise WrongBlock(f"$ {command}\n{output}\nthe shell has ended")
                output = _NOTICE.sub("", output + read.decode())
                if found := re.search(rf"^{mark}(\d+)\n", output, re.MULTILINE):
                    code, output = int(found[1]), output.replace(found[0], "")
        if code:
            raise WrongBlock(f"$ {command}\n{output}\nexit code {code}")

    def _with_free_ports(self, text: str) -> str:
        return _PORT.sub(lambda match: self._ports.setdefault(match[0], _free_port()), text)


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])
