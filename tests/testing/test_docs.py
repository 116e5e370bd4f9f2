"""The page about testing does what it says: each of its code blocks is run."""

import re
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
TESTS = [block for block in BLOCKS if "def test_" in block]
PROGRAMS = [block for block in BLOCKS if "def test_" not in block]


def test_the_page_has_both_kinds_of_examples() -> None:
    assert len(TESTS) >= 3
    assert len(PROGRAMS) >= 5


def test_the_tests_on_the_page_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{f"test_{number}": block for number, block in enumerate(TESTS)})
    pytester.runpytest_subprocess("--strict-markers").assert_outcomes(passed=len(TESTS))


@pytest.mark.parametrize("block", PROGRAMS)
def test_a_program_on_the_page_runs(block: str) -> None:
    exec(compile(block, str(PAGE), "exec"), {"__name__": "example"})
