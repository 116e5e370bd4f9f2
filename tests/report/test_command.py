"""`kohort report` on the story's tables: the file it leaves, groups and times that are asked for, and Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from pyspark.sql import SparkSession

from kohort.cli.report import report
from tests.report.story import MINUTE, START, produced
from tests.slow import slow

KOHORT = Path(sys.executable).parent / "kohort"
EARLIER, LATER = START + 90 * MINUTE, START + 150 * MINUTE


def data_in(path: Path) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1])
    return told


@slow
def test_groups_and_times_can_be_asked_for(spark: SparkSession, tables: Path, tmp_path: Path) -> None:  # noqa: ARG001
    out, groups = tmp_path / "some.html", ("deleted", "stopped-mailer", "rewinder")
    asked = [argument for group in groups for argument in ("--group", group)]
    times = ["--as-of", str(EARLIER), "--and", str(LATER), "--from-time", str(START + 30 * MINUTE)]
    done = CliRunner().invoke(report, [str(tables), "--out", str(out), *asked, *times])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{out}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["some.html"]
    told = data_in(out)
    assert told["groups"]["total"] == 3
    assert told["axis"]["start"] == START + 30 * MINUTE
    assert {told["strings"][row[0]] for row in told["topic"]["loudest"]} == set(groups)
    difference = told["difference"]
    assert (difference["earlier"], difference["later"]) == (EARLIER, LATER)
    rows = {(told["strings"][row[0]], row[2]): (row[3], row[4], told["strings"][row[6]]) for row in difference["rows"]}
    assert rows["deleted", 0] == (produced(START + 59 * MINUTE), None, "gone")
    assert rows["stopped-mailer", 3] == (produced(EARLIER), produced(LATER), "ahead")
    assert len(rows) == 8


@slow
def test_a_group_that_nobody_knows_is_wrong_usage(spark: SparkSession, tables: Path, tmp_path: Path) -> None:  # noqa: ARG001
    done = CliRunner().invoke(report, [str(tables), "--out", str(tmp_path / "x.html"), "--group", "no\x1b[31m"])
    assert done.exit_code == 2
    assert "the tables know of no group no\\x1b[31m" in done.stderr
    assert list(tmp_path.iterdir()) == []


@slow
def test_ctrl_c_leaves_the_file_of_before(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("of before")
    command = [KOHORT, "report", tables, "--out", out, "--master", "local[1]"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if len(lines) == 1:
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody hears it
    assert process.returncode == 130
    assert lines[0].startswith("kohort: groups: ")
    assert all(line.startswith("kohort: ") for line in lines), lines
    assert lines[-1] == "kohort: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert out.read_text() == "of before"
