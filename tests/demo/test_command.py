"""`kohort demo` as people type it: where it writes, Ctrl-C, `--keep`, and a machine without Spark."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession  # noqa: F401  # a demo starts one: the worker of Spark's tests runs these

from tests.cli.conftest import Run
from tests.cli.conftest import kohort as kohort  # the fixture, for this directory too
from tests.demo.conftest import KOHORT, processes_of, running
from tests.slow import slow

WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; from kohort.cli.main import main; main()"


def test_help_has_examples(kohort: Run) -> None:
    done = kohort("demo", "--help")
    assert done.returncode == 0
    assert "kohort demo --keep" in done.stdout


def test_what_is_no_former_demo_stays_as_it_is(kohort: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "thesis.txt").write_text("chapter one")
    for out, told in (
        (tmp_path, "holds something that is not from `kohort demo` and stays as it is"),
        (tmp_path / "thesis.txt", "is not a directory"),
        (tmp_path / "nowhere" / "demo", "no such directory"),
    ):
        done = kohort("demo", "--out", out)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "thesis.txt"]


@slow
def test_ctrl_c_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "shop"
    with running(KOHORT, "demo", "--out", out) as process:
        assert process.stdout is not None
        while "loses its only consumer" not in (line := process.stdout.readline()):
            assert line, "the story ended early"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody hears it
        _, complaints = process.communicate()
    assert process.returncode not in (0, -signal.SIGINT)
    assert processes_of(process.pid) == []
    assert not out.exists()
    assert "Traceback" not in complaints


@slow
def test_without_spark_the_story_is_told_and_the_broker_can_be_kept(kohort: Run, tmp_path: Path) -> None:
    out = tmp_path / "shop"
    with running(sys.executable, "-c", WITHOUT_SPARK, "demo", "--keep", "--out", out) as process:
        assert process.stdout is not None
        told = ""
        while "stays open until Ctrl-C" not in told:
            line = process.stdout.readline()
            assert line, told
            told += line
        page = re.search(r"Its page: (http://\S+)", told)
        assert page
        with urlopen(f"{page[1]}/groups.json") as answer:
            assert {"checkout", "billing"} <= {group["id"] for group in json.load(answer)["groups"]}
        again = kohort("demo", "--out", out)
        assert (again.returncode, again.stdout) == (1, "")
        assert "a broker is running on it" in again.stderr
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate()
    assert process.returncode == 1
    assert "kohort: pyspark is not installed: pip install 'kohort[spark]'" in complaints
    assert "Traceback" not in complaints
    assert processes_of(process.pid) == []
    assert "tombstones for nightly-export" in told
    assert not (out / "report.html").exists()
    state = json.loads(
        kohort("state", out / "data", "--format", "json").stdout
    )  # what is left is a log as it should be
    assert state["groups"]["checkout"]["state"] == "Stable"
    assert state["removed_groups"] == ["nightly-export"]
