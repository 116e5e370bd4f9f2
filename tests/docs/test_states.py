"""The drawing of the states says what the table says."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from docs.states import PLACES, draw

from docs import states
from kohort.group.states import VALID_PREVIOUS_STATES, GroupState

SVG = "{http://www.w3.org/2000/svg}"


def arrows(svg: str) -> list[ElementTree.Element]:
    paths = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [path for path in paths if "arrow" in path.get("class", "").split()]


def ids(svg: str) -> list[str]:
    return [arrow.get("id", "") for arrow in arrows(svg)]


def test_every_transition_of_the_table_is_drawn_and_nothing_else() -> None:
    table = [f"{old}-{new}" for new, olds in VALID_PREVIOUS_STATES.items() for old in olds]
    assert sorted(ids(draw())) == sorted(table)


def test_another_table_gives_other_arrows() -> None:
    table = {GroupState.STABLE: frozenset({GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE})}
    assert sorted(ids(draw(table))) == ["Dead-Stable", "Empty-Stable", "Stable-Stable"]


def test_every_arrow_has_a_head_that_is_defined() -> None:
    svg = draw()
    markers = {f"url(#{marker.get('id')})" for marker in ElementTree.fromstring(svg).iter(f"{SVG}marker")}
    assert {arrow.get("marker-end") for arrow in arrows(svg)} == markers


def test_the_ways_to_dead_are_drawn_apart_from_the_others() -> None:
    apart = {arrow.get("id") for arrow in arrows(draw()) if "to-last" in arrow.get("class", "")}
    assert apart == {f"{state}-Dead" for state in GroupState}


def test_every_state_has_a_box_with_its_name() -> None:
    groups = ElementTree.fromstring(draw()).iter(f"{SVG}g")
    assert {group.get("id"): group.findtext(f"{SVG}text") for group in groups} == {str(s): str(s) for s in GroupState}


def test_boxes_keep_apart() -> None:
    row = sorted((box for box in PLACES.values() if box.y == PLACES[GroupState.STABLE].y), key=lambda box: box.x)
    assert all(left.right < right.left for left, right in pairwise(row))
    assert PLACES[GroupState.DEAD].top > max(box.bottom for box in row)


def test_a_state_without_a_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(states.PLACES, GroupState.STABLE)
    with pytest.raises(LookupError, match="Stable has no place"):
        draw()


def test_the_drawing_has_a_title_and_tells_the_transitions_in_words() -> None:
    root = ElementTree.fromstring(draw())
    assert root.findtext(f"{SVG}title")
    assert "Stable to PreparingRebalance" in (root.findtext(f"{SVG}desc") or "")


def test_the_same_table_gives_the_same_bytes() -> None:
    turned = {new: VALID_PREVIOUS_STATES[new] for new in reversed(VALID_PREVIOUS_STATES)}
    assert draw() == draw() == draw(turned)
