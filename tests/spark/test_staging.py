"""A run's tables take the place of the old ones all together, or not at all. No Spark is needed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.spark.staging import BadOutput, Staging, is_being_replaced
from tests.cli.commands import ctrl_c_as_usual

OLD, NEW = "old", "new"


def put(directory: Path, tables: dict[str, str]) -> None:
    for name, text in tables.items():
        (directory / name).mkdir(parents=True)
        (directory / name / "part").write_text(text)


def tables_in(directory: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in sorted(directory.glob("[!.]*/part"))}


def test_tables_are_replaced_at_the_end_and_nothing_else_is_left(tmp_path: Path) -> None:
    put(tmp_path, {"a": OLD, "b": OLD, "mine": "a stranger's"})
    with Staging(tmp_path) as staging:
        put(Path(staging.path("")), {"a": NEW, "b": NEW, "scratch": NEW})
        assert tables_in(tmp_path) == {"a": OLD, "b": OLD, "mine": "a stranger's"}
        staging.publish(["a", "b"])
    assert tables_in(tmp_path) == {"a": NEW, "b": NEW, "mine": "a stranger's"}
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "mine"]


def test_what_was_not_published_is_gone(tmp_path: Path) -> None:
    put(tmp_path, {"a": OLD})
    with Staging(tmp_path) as staging:
        put(Path(staging.path("")), {"a": NEW})
    assert tables_in(tmp_path) == {"a": OLD}
    assert os.listdir(tmp_path) == ["a"]


def test_the_next_run_finishes_what_a_dead_one_has_begun(tmp_path: Path) -> None:
    """Killed at each rename: no table is ever lost, and in the end all are the new ones."""
    for deadly in range(4):
        out = tmp_path / str(deadly)
        put(out, {"a": OLD, "b": OLD})
        script = f"""
import os
from pathlib import Path
from kohort.spark.staging import Staging
with Staging(Path({str(out)!r})) as staging:
    for name in "ab":
        os.mkdir(staging.path(name))
        Path(staging.path(name), "part").write_text("new")
    left, rename = [{deadly}], os.rename
    def deadly(old, new):
        if not left[0]:
            os.kill(os.getpid(), 9)
        left[0] -= 1
        rename(old, new)
    os.rename = deadly
    staging.publish("ab")
"""
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
        assert is_being_replaced(out)
        with Staging(out):
            pass
        assert tables_in(out) == {"a": NEW, "b": NEW}
        assert not is_being_replaced(out)


def test_two_runs_do_not_write_to_one_directory(tmp_path: Path) -> None:
    with Staging(tmp_path) as first:
        put(Path(first.path("")), {"a": NEW})
        with pytest.raises(BadOutput, match="another run is writing to it"), Staging(tmp_path):
            pass
        first.publish(["a"])
    assert tables_in(tmp_path) == {"a": NEW}


def test_ctrl_c_waits_until_all_tables_are_in_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a": OLD, "b": OLD})
    rename = os.rename

    def interrupted(old: Path, new: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        rename(old, new)

    with Staging(tmp_path) as staging:
        put(Path(staging.path("")), {"a": NEW, "b": NEW})
        monkeypatch.setattr(os, "rename", interrupted)
        with ctrl_c_as_usual(), pytest.raises(KeyboardInterrupt):
            staging.publish(["a", "b"])
    assert tables_in(tmp_path) == {"a": NEW, "b": NEW}


def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadOutput, match="Not a directory"), Staging(tmp_path / "file" / "out"):
        pass
