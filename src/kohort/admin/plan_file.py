"""Offsets of groups in a file: CSV as `kafka-consumer-groups --reset-offsets --from-file` has it, or JSON.

CSV has no heading; the group stands in front unless the file is of one group, whose name then is told elsewhere. JSON
is what `kohort state` calls `offsets`, and keeps metadata and leader epochs.
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kohort.admin.offsets import Offset, Offsets
from kohort.admin.refusals import named
from kohort.errors import KohortError
from kohort.records.json_text import to_json

_LARGEST_OFFSET = (1 << 63) - 1
_LARGEST_PARTITION = (1 << 31) - 1
_LONGEST_TEXT = 0x7FFF
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class BadPlan(KohortError):
    """A file that does not tell offsets of groups."""


def to_csv(plan: Mapping[str, Offsets], *, with_group: bool) -> str:
    """Names stand as they are, for Kafka must find them again."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, offsets in plan.items():
        for (topic, partition), offset in sorted(offsets.items()):
            row = (topic, partition, offset.offset)
            writer.writerow((group, *row) if with_group else row)
    return text.getvalue()


def to_json_plan(plan: Mapping[str, Offsets]) -> str:
    rows = [
        {
            "group": group,
            "topic": topic,
            "partition": partition,
            "offset": offset.offset,
            "leader_epoch": offset.leader_epoch,
            "metadata": offset.metadata,
        }
        for group, offsets in plan.items()
        for (topic, partition), offset in sorted(offsets.items())
    ]
    return to_json({"offsets": rows}, indent=1) + "\n"


def unwritable(plan: Mapping[str, Offsets]) -> list[str]:
    """Groups that CSV cannot name: Kafka's tool takes each line of it by itself, and a return may end one too."""
    return [group for group in plan if "\n" in group or "\r" in group]


def formulas(plan: Mapping[str, Offsets]) -> list[str]:
    """Groups whose names a spreadsheet would take for formulas."""
    return [group for group in plan if group.startswith(_FORMULAS)]


def read_plan(path: Path, group: str | None) -> dict[str, Offsets]:
    """The offsets in a file; `group` is the one whose file it is, if it has only one."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise BadPlan(f"{path}: is not text") from None
    if text.lstrip()[:1] in ("{", "["):
        return _from_json(path, text)
    plan: dict[str, Offsets] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _put(plan, f"{path}, line {number}", *_cells(path, number, line, group))
    if not plan:
        raise BadPlan(f"{path}: has no offsets")
    return plan


def _cells(path: Path, number: int, line: str, group: str | None) -> tuple[Any, Any, Any, Any]:
    try:
        (cells,) = csv.reader([line.removesuffix("\r")], strict=True)
    except (csv.Error, ValueError):
        raise BadPlan(f"{path}, line {number}: is not CSV") from None
    if len(cells) == 4:
        name, topic, partition, offset = cells
    elif len(cells) == 3 and group is not None:
        name, (topic, partition, offset) = group, cells
    elif len(cells) == 3:
        raise BadPlan(f"{path}, line {number}: names no group: --group must say whose offsets these are")
    else:
        raise BadPlan(f"{path}, line {number}: expected topic,partition,offset or group,topic,partition,offset")
    return name, topic, _number(partition), _number(offset)


def _number(cell: str) -> int | str:
    return int(cell) if cell.strip().isascii() and cell.strip().isdigit() else cell


def _from_json(path: Path, text: str) -> dict[str, Offsets]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise BadPlan(f"{path}: is not JSON") from None
    rows = told.get("offsets") if isinstance(told, dict) else told
    if not isinstance(rows, list) or not rows:
        raise BadPlan(f"{path}: has no offsets")
    plan: dict[str, Offsets] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}, offset {number}"
        if not isinstance(row, dict) or not {"group", "topic", "partition", "offset"} <= row.keys():
            raise BadPlan(f"{where}: expected group, topic, partition and offset")
        epoch, metadata = row.get("leader_epoch", -1), row.get("metadata") or ""
        if not _is_number(epoch, _LARGEST_PARTITION, least=-1):
            raise BadPlan(f"{where}: {named(str(epoch))} is no leader epoch")
        _put(plan, where, row["group"], row["topic"], row["partition"], row["offset"], epoch, metadata)
    return plan


def _put(
    plan: dict[str, Offsets],
    where: str,
    group: Any,
    topic: Any,
    partition: Any,
    offset: Any,
    epoch: int = -1,
    metadata: Any = "",
) -> None:
    if not _is_text(group) or not _is_text(topic) or not _is_text(metadata):
        raise BadPlan(f"{where}: group, topic and metadata must be text of up to {_LONGEST_TEXT} bytes")
    if not _is_number(partition, _LARGEST_PARTITION):
        raise BadPlan(f"{where}: {named(str(partition))} is no partition")
    if not _is_number(offset, _LARGEST_OFFSET):
        raise BadPlan(f"{where}: {named(str(offset))} is no offset")
    offsets = plan.setdefault(group, {})
    if (topic, partition) in offsets:
        raise BadPlan(f"{where}: a second offset of {named(group)} for {named(f'{topic}-{partition}')}")
    offsets[topic, partition] = Offset(offset, epoch, metadata)


def _is_number(value: object, most: int, *, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value: object) -> bool:
    """JSON can spell characters that no text in UTF-8 has; and no request holds longer texts than these."""
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        return False
    return len(value.encode()) <= _LONGEST_TEXT
