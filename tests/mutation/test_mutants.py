"""A mutant is the module with one change that matters; `python -m tests.mutation` tries them, these tests do not."""

import ast
from pathlib import Path

import pytest

from tests.mutation.areas import AREAS, PACKAGE, TOP, area_of
from tests.mutation.mutants import mutants

SOURCE = '''"""Says 1 < 2."""

import logging

logger = logging.getLogger(__name__)


def grown(size: int, most: int = 10) -> int:
    """At most 10."""
    logger.info("%d", size + 1)
    if size < most and not size % 2:
        raise ValueError(f"{size + 1} of {most}", 7)
    return size + 1  # one more
'''


def changed_lines(source: str) -> list[str]:
    """The new lines of each mutant."""
    diffs = [mutant.diff(source).splitlines() for mutant in mutants(source)]
    return [" / ".join(line[1:].strip() for line in lines if line.startswith("+")) for lines in diffs]


def test_every_change_that_matters_is_made_once() -> None:
    assert sorted(changed_lines(SOURCE)) == sorted(
        [
            "def grown(size: int, most: int = (11)) -> int:",
            "if not (size < most and (not size % 2)):",
            "if (size < most or not size % 2):",
            "if (size <= most) and not size % 2:",
            "if (size >= most) and not size % 2:",
            "if size < most and (size % 2):",
            "if size < most and not size % (3):",
            "pass",
            "return (size - 1)  # one more",
            "return size + (2)  # one more",
            "return None  # one more",
            "return None / logger.info('%d', size + 1)",
        ]
    )


@pytest.mark.parametrize(
    ("statement", "new"),
    [
        ("x = a is None", "x = (a is not None)"),
        ("x = a in b", "x = (a not in b)"),
        ("x = min(a, b)", "x = (max(a, b))"),
        ("x = b if a else c", "x = (b if not a else c)"),
        ("x = True", "x = (False)"),
        ("x.y = z", "pass"),
        ("x += y", "pass"),
        ("del x[y]", "pass"),
        ("while x:\n    break", "continue"),
        ("while x:\n    continue", "break"),
        ("x = a & b", "x = (a | b)"),
    ],
)
def test_a_change_of_each_kind(statement: str, new: str) -> None:
    assert new in changed_lines(statement)


@pytest.mark.parametrize(
    "statement",
    ["import a", "__all__ = [1]", "x: 'int | None'", "def __repr__(self): return 1", "zip(a, b, strict=True).x"],
)
def test_what_is_only_said_or_checked_is_let_be(statement: str) -> None:
    assert not any("(2)" in line or "False" in line for line in changed_lines(statement))


@pytest.mark.parametrize("module", ["log/retention.py", "group/placement.py"])
def test_mutants_of_the_product_differ_from_it_and_from_each_other(module: str) -> None:
    source = (PACKAGE / module).read_text()
    made = mutants(source)
    assert len({ast.dump(ast.parse(mutant.source)) for mutant in made} | {ast.dump(ast.parse(source))}) == len(made) + 1
    assert [mutant.line for mutant in made] == sorted(mutant.line for mutant in made)


def test_every_module_has_tests_to_ask() -> None:
    for area in AREAS.values():
        for module in area.modules:
            assert (PACKAGE / module).is_file()
            assert area_of(module) is area
            asked = area.tests_of(module)
            assert asked
            assert all((TOP / test).is_file() for test in asked)
    assert Path(AREAS["log"].tests_of("log/recovery.py")[0]).name == "test_recovery.py"
    with pytest.raises(ValueError, match="is not mutated"):
        area_of("log/simulated_files.py")
