"""Values that no golden log holds, written by Kafka 4.1.0's own message classes: bytes, and what Kafka says is in them.

`vectors/kafka-4.1.0-values.tsv` has for each value class and version one message with defaults, one with every field
set and one with half of them: class, version, the bytes in hex, and Kafka's JSON of it.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from kohort.records.coordinator_records import RECORD_TYPES
from kohort.records.offsets_topic import (
    CoordinatorKey,
    CoordinatorValue,
    GroupKey,
    GroupMetadataValue,
    Key,
    OffsetCommitValue,
    OffsetKey,
    decode_value,
    encode_value,
)
from tests.records.test_golden import _assert_same_fields, _camel

VECTORS = Path(__file__).parent / "vectors" / "kafka-4.1.0-values.tsv"
BY_CLASS = {
    "".join(word.title() for word in row.name.split("_")) + "Value": CoordinatorKey(row.number, row.name, {})
    for row in RECORD_TYPES.values()
}
KEYS: dict[str, Key] = BY_CLASS | {
    "LegacyOffsetCommitValue": OffsetKey("g", "t", 0, version=0),
    "OffsetCommitValue": OffsetKey("g", "t", 0),
    "GroupMetadataValue": GroupKey("g"),
}


def vectors() -> list[Any]:
    rows = [line.split("\t") for line in VECTORS.read_text().splitlines()]
    return [
        pytest.param(name, bytes.fromhex(raw), json.loads(said), id=f"{name}-v{version}-{number % 3}")
        for number, (name, version, raw, said) in enumerate(rows)
    ]


@pytest.mark.parametrize(("name", "raw", "said"), vectors())
def test_a_value_reads_as_kafka_reads_it(name: str, raw: bytes, said: dict[str, Any]) -> None:
    value = decode_value(KEYS[name], raw)
    match value:
        case CoordinatorValue():
            ours = value.fields
        case OffsetCommitValue():
            ours = {field: item for field, item in value._asdict().items() if field != "version"}
        case GroupMetadataValue():
            ours = {field: item for field, item in dataclasses.asdict(value).items() if field != "version"}
            ours["members"] = list(value_members(value))
        case _:
            pytest.fail(f"unreadable: {value}")
    _assert_same_fields(_camel(ours), said)
    if isinstance(value, OffsetCommitValue | GroupMetadataValue):
        assert encode_value(value) == raw


def value_members(value: GroupMetadataValue) -> list[dict[str, Any]]:
    return [dataclasses.asdict(member) for member in value.members]
