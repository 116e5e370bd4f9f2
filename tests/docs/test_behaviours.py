"""How our tests are read for the names of Kafka's, on small sources; and the table they are held against."""

from collections import Counter
from pathlib import Path

import pytest
from docs.behaviours import (
    LATER,
    SECTIONS,
    SUITES,
    Behaviour,
    Coverage,
    OurTest,
    faithfulness,
    find_tests,
    read_table,
    report,
)

JOIN = Behaviour("GC", "testJoin", "1.2", "a join: NONE | an error.")
LEAVE = Behaviour("GC", "testLeave", "1.7", "a leave.")
UNLOAD = Behaviour("GMM", "testUnload", LATER, "an unload.")


def read(root: Path, source: str, path: str = "tests/group/test_it.py") -> list[OurTest]:
    """What is found in a project whose only test file says `source`."""
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text(source)
    return find_tests(root)


def names(tests: list[OurTest]) -> list[str]:
    return [name for test in tests for name in test.names]


def test_the_table_has_every_test_case_of_kafka_2_6_once() -> None:
    rows = read_table()
    then = [row for row in rows if row.section != LATER]
    assert len(then) == 268
    assert Counter(row.suite for row in then) == {"GC": 157, "GMM": 56, "GM": 45, "MM": 6, "CC": 4}
    assert len({row.name for row in rows}) == len(rows)
    assert {row.section for row in rows} == set(SECTIONS)
    assert {row.suite for row in rows} == set(SUITES)
    assert all(row.in_words for row in rows)


def test_a_project_without_tests_covers_nothing(tmp_path: Path) -> None:
    covered = Coverage([JOIN, UNLOAD], find_tests(tmp_path))
    assert covered.uncovered() == [JOIN, UNLOAD]
    assert covered.summary() == "0 / 1 behaviours of Kafka 2.6 covered, 0 / 1 of later releases"


def test_names_are_lines_of_their_own_in_the_docstring_of_a_test(tmp_path: Path) -> None:
    source = '''
def test_a_join_is_answered():
    """A member that joins is let in, as in GC testProse which is no line of its own.

    GC testJoin
    GMM testUnload
    """

async def test_one_line():
    """GC testLeave"""

def helper():
    """GC testHelper"""

def test_whose_docstring_goes_on_in_that_line():
    """GC testLeave ends here."""
'''
    assert read(tmp_path, source) == [
        OurTest("tests/group/test_it.py", "test_a_join_is_answered", ("GC testJoin", "GMM testUnload")),
        OurTest("tests/group/test_it.py", "test_one_line", ("GC testLeave",)),
    ]


def test_methods_of_test_classes_are_found_by_their_full_name(tmp_path: Path) -> None:
    source = '''
class TestJoin:
    class TestStatic:
        def test_again(self):
            """GC testJoin"""

class Context:
    def test_drive(self):
        """GC testLeave"""
'''
    [test] = read(tmp_path, source)
    assert test.function == "TestJoin::TestStatic::test_again"


def test_only_files_that_pytest_collects_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, 'def test_it():\n    """GC testJoin"""\n', "tests/group/context.py") == []


@pytest.mark.parametrize(
    "mark",
    [
        "pytest.mark.skip",
        "pytest.mark.skip('why')",
        "pytest.mark.skipif(True, reason='')",
        "mark.xfail",
        "xfail",
        "later",
    ],
)
def test_a_test_that_is_skipped_or_expected_to_fail_shows_nothing(tmp_path: Path, mark: str) -> None:
    source = f'''
later = pytest.mark.skipif(sys.platform == "win32", reason="later")

@pytest.mark.parametrize("n", [1])
@{mark}
def test_marked():
    """GC testJoin"""

@{mark}
class TestMarked:
    def test_inside(self):
        """GC testLeave"""

@pytest.mark.parametrize("n", [1])
def test_that_runs():
    """GMM testUnload"""
'''
    assert names(read(tmp_path, source)) == ["GMM testUnload"]


@pytest.mark.parametrize("marks", ["pytest.mark.skip", "[pytest.mark.slow, pytest.mark.xfail(strict=True)]"])
def test_a_module_that_is_skipped_shows_nothing(tmp_path: Path, marks: str) -> None:
    assert read(tmp_path, f'pytestmark = {marks}\n\ndef test_it():\n    """GC testJoin"""\n') == []


def test_notes_go_on_until_a_blank_line(tmp_path: Path) -> None:
    source = '''
def test_it():
    """What it shows.

    GC testJoin
    Repaired: KAFKA-1, nothing may
      stay pending.
    Python: two threads became
    two tasks.

    This is no note.
    """
'''
    [test] = read(tmp_path, source)
    assert test.names == ("GC testJoin",)
    assert test.repaired == "KAFKA-1, nothing may stay pending."
    assert test.python == "two threads became two tasks."


def test_a_repair_without_a_test_of_kafka_is_kept(tmp_path: Path) -> None:
    [test] = read(tmp_path, 'def test_it():\n    """Repaired: a failed load is never empty."""\n')
    assert test.names == ()
    assert test.repaired == "a failed load is never empty."


@pytest.mark.parametrize("name", ["GC testJion", "GC testjoin", "GM testJoin", "GC testJoin."])
def test_a_name_that_kafka_has_not_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    covered = Coverage([JOIN], read(tmp_path, f'def test_it():\n    """{name}"""\n'))
    assert [unknown for unknown, _ in covered.unknown()] == [name]
    assert covered.uncovered() == [JOIN]
    assert f"unknown: {name} in tests/group/test_it.py::test_it\n" in report(covered)


def test_the_report_counts_each_section_and_ends_with_the_sum() -> None:
    tests = [OurTest("tests/test_a.py", "test_one", (JOIN.name,)), OurTest("tests/test_a.py", "test_two", (JOIN.name,))]
    lines = report(Coverage([JOIN, LEAVE, UNLOAD], tests)).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["1.2", "Join", "(dynamic", "members)", "1", "/", "1"],
        ["1.7", "Leave", "0", "/", "1"],
        ["1.17", "Added", "after", "2.6", "0", "/", "1"],
    ]
    assert lines[3:] == [
        "uncovered: 1.7 GC testLeave",
        "uncovered: 1.17 GMM testUnload",
        "1 / 2 behaviours of Kafka 2.6 covered, 0 / 1 of later releases",
    ]


def test_the_page_links_every_test_and_gives_a_verdict() -> None:
    tests = [
        OurTest("tests/group/test_a.py", "test_one", (JOIN.name,)),
        OurTest("tests/group/test_b.py", "test_two", (JOIN.name,), python="tasks"),
        OurTest("tests/group/test_b.py", "test_three", (UNLOAD.name,), repaired="KAFKA-2 | lost"),
    ]
    page = faithfulness(Coverage([JOIN, LEAVE, UNLOAD], tests)).splitlines()
    one, two, three = (test.link() for test in tests)
    assert one == "[group/test_a.py::test_one](../tests/group/test_a.py)"
    assert rf"| GC `testJoin` | a join: NONE \| an error. | {one}<br>{two} | same, in Python: tasks |" in page
    assert "| GC `testLeave` | a leave. | none | not covered |" in page
    assert rf"| GMM `testUnload` | an unload. | {three} | repaired: KAFKA-2 \| lost |" in page
    assert f"- KAFKA-2 | lost. Kafka: `GMM testUnload`. Ours: {three}." in page


def test_a_reason_shared_by_several_tests_is_told_once() -> None:
    tests = [OurTest("tests/test_a.py", f"test_{n}", (JOIN.name,), repaired="too large") for n in range(2)]
    page = faithfulness(Coverage([JOIN], tests))
    assert page.count("- Too large.") == 1
    assert page.count("repaired: too large |") == 1
