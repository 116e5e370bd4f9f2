"""What fuzzing found interesting, and all that it ever found to be wrong, once more.

A failure tells how to repeat it. `make fuzz` looks for more.
"""

from pathlib import Path

import pytest

from tests.fuzzing.corpus import keep, keep_finding, kept
from tests.fuzzing.target import TooExpensive
from tests.fuzzing.targets import TARGETS, Target

_MOST_BYTES = 400_000


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_that_was_kept_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target, found = TARGETS[name], kept(name)
    assert found
    for called, data in found.items():
        try:
            target.run(data)
        except Exception as error:
            path = tmp_path / called
            path.write_bytes(data)
            raise AssertionError(f"to repeat it: python -m tests.fuzzing {name} --repeat {path}") from error


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_or_refused(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].run(seed)


def test_the_corpus_is_small() -> None:
    assert sum(len(data) for name in TARGETS for data in kept(name).values()) < _MOST_BYTES


def test_findings_stay_when_the_corpus_is_chosen_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.corpus._ROOT", tmp_path / "corpus")
    assert keep("t", [b"", b"\x00odd"]) == 2
    keep_finding("t", "a-crash", b"crash")
    assert keep("t", [b"new", b"crash"]) == 2
    assert sorted(kept("t").values()) == [b"crash", b"new"]
    assert kept("t")["finding-a-crash"] == b"crash"


def test_a_small_input_that_takes_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.target._MOST_CPU_S", 0.0)
    with pytest.raises(TooExpensive, match="3 bytes took"):
        Target("t", bytes.hex, list).run(b"odd")


def test_a_small_input_that_takes_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzzing.target._MOST_GROWTH_KIB", -1)
    with pytest.raises(TooExpensive, match="MiB more"):
        Target("t", bytes.hex, list).run(b"odd")
