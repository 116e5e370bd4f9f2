"""`kohort report` as people type it: usage and refusals, before Spark starts."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

MANIFEST = {
    "source": "log", "topic": "__consumer_offsets", "format": "parquet", "rule": "position", "mode": "permissive",
    "retention_minutes": 10080, "started_at": "2026-03-01T00:00:00+00:00", "seconds": 1.0, "as_of": None,
    "at": "2026-03-01T06:00:00+00:00", "ends": "furthest_group", "accounting": {}, "versions": {}, "tables": {},
    "version": 1,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "tables"
    directory.mkdir()
    (directory / "kohort.json").write_text(json.dumps(MANIFEST))
    return directory


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--and", "2026-03-01T01:00"], "--and needs --as-of"),
        (["--as-of", "2026-03-01T02:00", "--and", "2026-03-01T01:00"], "--as-of is not before --and"),
        (["--as-of", "2026-03-02T02:00"], "--as-of is not before --and"),
        (["--from-time", "2026-03-02T02:00"], "--from-time is not before the end of the tables"),
        (["--out", "nowhere/report.html"], "nowhere: no such directory"),
        (["--as-of", "noon"], "'noon' is neither ISO 8601"),
    ],
)
def test_wrong_usage_is_exit_code_2(kohort: Run, run: Path, arguments: list[str], told: str) -> None:
    done = kohort("report", run, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert not (run / "report.html").exists()


def test_a_directory_without_a_run_is_told_in_one_sentence(kohort: Run, tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        done = kohort("report", directory)
        assert (done.returncode, done.stdout) == (2, "")
        assert "no finished run of `kohort pipeline` is there" in done.stderr
        assert "Traceback" not in done.stderr


def test_help_has_examples(kohort: Run) -> None:
    done = kohort("report", "--help")
    assert done.returncode == 0
    assert "kohort report tables --out stuck.html --group billing" in done.stdout
