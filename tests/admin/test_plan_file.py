"""Offsets of groups in files: what is written is read again, and what is no such file is told in one line."""

import json
from pathlib import Path

import pytest

from kohort.admin.offsets import Offset, Offsets
from kohort.admin.plan_file import BadPlan, formulas, read_plan, to_csv, to_json_plan, unwritable

PLAN: dict[str, Offsets] = {
    "=1+1": {("orders", 0): Offset(1)},
    'a,b"c': {("orders", 0): Offset(2), ("orders", 10): Offset((1 << 63) - 1)},
    "  leading and trailing  ": {("orders", 1): Offset(3)},
    "группа\x1b[31m\u202e": {("orders", 0): Offset(0)},
    "": {("orders", 0): Offset(4)},
}


def test_csv_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(to_csv(PLAN, with_group=True), encoding="utf-8", newline="")
    assert read_plan(path, None) == PLAN
    assert read_plan(path, "not asked for") == PLAN


def test_json_keeps_metadata_leader_epochs_and_every_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan = {**PLAN, "two\nlines": {("orders", 0): Offset(5, 7, "left\0here")}}
    path.write_text(to_json_plan(plan), encoding="ascii")
    assert read_plan(path, None) == plan


def test_a_file_of_one_group_needs_its_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("orders,0,12\r\norders,1,13\r\n", newline="")
    assert read_plan(path, "billing") == {"billing": {("orders", 0): Offset(12), ("orders", 1): Offset(13)}}
    with pytest.raises(BadPlan, match="line 1: names no group: --group must say"):
        read_plan(path, None)


def test_names_that_lines_cannot_hold_and_formulas_are_known() -> None:
    plan: dict[str, Offsets] = {name: {} for name in ("two\nlines", "carriage\rreturn", "+1", "@x", "plain")}
    assert unwritable(plan) == ["two\nlines", "carriage\rreturn"]
    assert formulas(plan) == ["+1", "@x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no offsets"),
        ("GROUP,TOPIC,PARTITION,OFFSET\n", "line 1: 'PARTITION' is no partition"),
        ("g,orders,0,1\ng,orders,x,1\n", "line 2: 'x' is no partition"),
        ("g,orders,0,-1\n", "line 1: '-1' is no offset"),
        ("g,orders,0,9223372036854775808\n", "is no offset"),
        ("g,orders,2147483648,1\n", "is no partition"),
        ("g,orders,٣,1\n", "is no partition"),
        ("g,orders\n", "line 1: expected topic,partition,offset or group,topic,partition,offset"),
        ('"g,orders,0,1\n', "line 1: is not CSV"),
        ("g,orders,0,1\ng,orders,0,2\n", "line 2: a second offset of 'g' for 'orders-0'"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no offsets"),
        ('{"groups": {}}', "has no offsets"),
        ("[1]", "offset 1: expected group, topic, partition and offset"),
        (json.dumps([{"group": 1, "topic": "t", "partition": 0, "offset": 0}]), "must be text"),
        (json.dumps([{"group": "\ud800", "topic": "t", "partition": 0, "offset": 0}]), "must be text"),
        (f"{'x' * 32_768},orders,0,1\n", "must be text of up to 32767 bytes"),
        (json.dumps([{"group": "g", "topic": "t", "partition": True, "offset": 0}]), "is no partition"),
        (json.dumps([{"group": "g", "topic": "t", "partition": 0, "offset": 1.5}]), "is no offset"),
        (json.dumps([{"group": "g", "topic": "t", "partition": 0, "offset": 0, "metadata": 3}]), "must be text"),
        (json.dumps([{"group": "g", "topic": "t", "partition": 0, "offset": 0, "leader_epoch": "x"}]), "leader epoch"),
    ],
)
def test_what_is_no_plan_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "plan"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadPlan) as refused:
        read_plan(path, None)
    assert told in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_bytes(b"\xff\xfe,orders,0,1\n")
    with pytest.raises(BadPlan, match="is not text"):
        read_plan(path, None)
