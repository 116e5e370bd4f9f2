"""The parts of a report that need no Spark: text that is inert, lines that are short, steps of time, lag by steps."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.report.axis import fit
from kohort.report.lag import walk_partition
from kohort.report.limits import LONG_TEXTS
from kohort.report.page import make_page, plotly_script
from kohort.report.series import differences, packed
from kohort.report.text import Strings, inert_json
from tests.report.packing import unpacked


@pytest.mark.parametrize(
    "text", ["</script><script>", "<!--", "a&b", "\u2028\u2029", "\u202e", "\x00\x1b[31m", "\ud800", "日本", '"\\']
)
def test_text_is_the_same_when_it_is_read_and_nothing_while_it_is_not(text: str) -> None:
    told = inert_json({"text": text})
    assert json.loads(told) == {"text": text}
    assert not set(told) & set("<>&\u2028\u2029")
    told.encode("utf-8")


def test_a_string_is_kept_once_and_long_ones_until_there_is_no_room() -> None:
    strings = Strings()
    assert (strings.number("a"), strings.number("b"), strings.number("a"), strings.number(None)) == (0, 1, 0, None)
    long = [f"{n}" + "x" * 32_000 for n in range(2 * LONG_TEXTS // 32_000)]
    numbers = [strings.number(text) for text in long]
    kept = strings.all()
    assert kept[numbers[0] or 0] == long[0]
    assert kept[numbers[-1] or 0].endswith("characters)")
    assert sum(map(len, kept)) < 1.1 * LONG_TEXTS


def test_a_line_is_packed_where_it_stays_the_same() -> None:
    nothing = math.nan
    line = np.array([nothing, nothing, nothing, 1, 2, 2, -1, 5, 5, 5, 5, 5, 1 << 40])
    assert packed(line) == "...CEEBK*EggggggggC"
    assert unpacked(packed(line)) == [None, None, None, 1, 2, 2, -1, 5, 5, 5, 5, 5, 1 << 40]
    assert packed(np.array([])) == ""
    assert unpacked(packed(differences(np.array([nothing, 7, 9, nothing, 9, 4])))) == [None, 7, 2, None, 0, -5]


@given(st.lists(st.none() | st.integers(-(1 << 50), 1 << 50) | st.just(7)))
def test_any_line_is_what_it_was(line: list[int | None]) -> None:
    assert unpacked(packed(np.array([math.nan if value is None else value for value in line], float))) == line


@pytest.mark.parametrize(
    ("span", "step", "bins"),
    [(0, 1_000, 1), (10_000, 1_000, 11), (6 * 3_600_000, 120_000, 181), (400 * 86_400_000, 2 * 86_400_000, 201)],
)
def test_an_axis_has_round_steps(span: int, step: int, bins: int) -> None:
    start = 1_772_323_200_000 // step * step
    axis = fit(start, start + span, 240)
    assert (axis.start, axis.step, axis.bins) == (start, step, bins)


def test_an_axis_of_millennia_still_has_few_steps() -> None:
    axis = fit(-62_135_596_800_000, 253_402_300_799_999, 240)
    assert axis.bins == 240
    assert axis.start + axis.step * axis.bins > 253_402_300_799_999


def partition(*rows: tuple[int, int, int | None, int | None, bool | None]) -> dict[int, dict[int, tuple[float, float]]]:
    """Of each group, step by step, lag and seconds. Rows are group, step, furthest, last, gone."""
    names = ("g", "bin", "furthest", "last", "gone")
    types = (pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.bool_())
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    found: dict[int, dict[int, tuple[float, float]]] = {}
    for row in walk_partition(pa.table(columns, names=names), 5, 10.0).to_pylist():
        found.setdefault(row["g"], {})[row["bin"]] = (row["lag"], row["seconds"])
    return found


def test_lag_grows_while_others_go_on() -> None:
    found = partition((0, 0, 10, 10, False), (1, 0, 10, 10, False), (1, 1, 20, 20, False), (1, 3, 40, 40, False))
    assert found[1] == dict.fromkeys(range(5), (0, 0))
    assert found[0] == {0: (0, 0), 1: (10, 0), 2: (10, 10), 3: (30, 20), 4: (30, 30)}


def test_what_was_before_the_axis_is_where_it_begins() -> None:
    found = partition((0, -1, 5, 5, False), (-1, 0, 9, None, None))
    assert found == {0: {n: (4, 10.0 * n) for n in range(5)}}


def test_there_is_no_lag_before_the_first_commit_nor_after_a_tombstone() -> None:
    found = partition((0, 1, 10, 10, False), (0, 3, None, 10, True), (-1, 4, 50, None, None))
    assert found == {0: {1: (0, 0), 2: (0, 0)}}


def test_a_page_asks_nobody_and_names_what_may_run() -> None:
    page = make_page({"strings": ["<!--plotly--></script>"]})
    assert page.count(plotly_script()[:200]) == 1
    assert page.count("</script>") == 3
    policy = page.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy
