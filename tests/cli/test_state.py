"""`kohort state`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    Key,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    Value,
    encode_key,
    encode_value,
)
from kohort.records.replay import Rule
from tests.cli.conftest import Run
from tests.golden_sets import GOLDEN, ROOT, GoldenSet
from tests.records.serial_load import serial_load


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_the_offsets_are_those_of_the_broker(kohort: Run, golden: GoldenSet) -> None:
    done = kohort("state", golden.path, "--rule", golden.loads_by.value, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    state = json.loads(done.stdout)
    assert set(state) == {"groups", "offsets", "pending", "removed_groups"}
    told = golden.state_reloaded()["groups"]
    assert sorted(
        (o["group"], o["topic"], o["partition"], o["offset"], o["metadata"]) for o in state["offsets"]
    ) == sorted(
        (group["group_id"], o["topic"], o["partition"], o["offset"], o["metadata"])
        for group in told
        for o in group.get("offsets", ())
    )
    assert state["groups"].keys() == {group["group_id"] for group in told}


def test_a_group_is_told_with_its_members(kohort: Run) -> None:
    state = json.loads(kohort("state", ROOT / "kafka-2.6.3-ibp-2.6", "--format", "json").stdout)
    group = state["groups"]["k26.g-static"]
    assert (group["state"], group["generation"], group["protocol_type"], group["protocol"]) == (
        "Stable",
        3,
        "consumer",
        "range",
    )
    assert {member["instance_id"] for member in group["members"]} == {"k26.instance-1", "k26.instance-2"}
    assert sorted(tuple(pair) for member in group["members"] for pair in member["assignment"]) == [
        ("k26.orders", 0),
        ("k26.orders", 1),
        ("k26.orders", 2),
    ]
    assert {offset["group"] for offset in state["pending"]} == {"k26.g-txn", "k26.g-txn-open-only"}


def test_the_state_at_a_time_is_the_state_of_the_log_up_to_then(kohort: Run) -> None:
    golden = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")
    batches = {
        number: [batch for path in paths for batch in read_batches(path.read_bytes())]
        for number, paths in golden.partitions().items()
    }
    times = sorted(batch.header.max_timestamp for found in batches.values() for batch in found)
    for moment in (times[0] - 1, times[len(times) // 3], times[len(times) // 2], times[-1]):
        want = set()
        for found in batches.values():
            kept = []
            for batch in found:
                if batch.header.max_timestamp > moment:
                    break
                kept.append(batch)
            want |= serial_load(kept, Rule.POSITION).offsets.keys()
        state = json.loads(kohort("state", golden.path, "--as-of", str(moment), "--format", "json").stdout)
        assert {(o["group"], o["topic"], o["partition"]) for o in state["offsets"]} == want


def test_the_table_names_every_group_and_offset(kohort: Run) -> None:
    done = kohort("state", ROOT / "compacted")
    assert done.returncode == 0
    assert "GROUP" in done.stdout
    assert "cmp.g-simple" in done.stdout
    assert "Waiting for the end of their transaction:" in done.stdout


def test_a_damaged_log_gives_the_rest_and_exit_code_1(kohort: Run, tmp_path: Path) -> None:
    data = bytearray((ROOT / "compacted/__consumer_offsets-0/00000000000000000000.log").read_bytes())
    data[100] ^= 1
    path = tmp_path / "hurt.log"
    path.write_bytes(data)
    done = kohort("state", path, "--format", "json")
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["offsets"]) > 5
    assert done.stderr.startswith(f"kohort: damaged: {path}, byte 0: checksum")


HOSTILE = [
    '"><script>alert(1)</script>',
    "red\x1b[31m\x1b]0;title\x07",
    "=cmd|' /C calc'!A0",
    "right\u202eleft",
    "two\nlines",
    "x" * 32_000,
]


def hostile_log() -> Iterator[RecordBatch]:
    """Everything that a client may choose is hostile: groups, members, protocols, topics, metadata."""
    offset = 0
    for name in HOSTILE:
        member = MemberValue(
            member_id=name,
            client_id=name,
            client_host=name,
            session_timeout=1,
            rebalance_timeout=1,
            subscription=b"no subscription",
            assignment=b"no assignment",
            group_instance_id=name,
        )
        values: list[tuple[Key, Value | None]] = [
            (GroupKey(name), GroupMetadataValue("consumer", 1, name, name, (member,), 1)),
            (OffsetKey(name, name, 0), OffsetCommitValue(1, name, 1)),
            (GroupKey(f"{name}, removed"), None),
        ]
        records = [(encode_key(key), None if value is None else encode_value(value)) for key, value in values]
        records.append((encode_key(OffsetKey(name, f"{name}, unreadable", 0)), b"\xff\xff"))
        yield RecordBatch.build([Record(offset + n, 1, *record) for n, record in enumerate(records)], base_sequence=0)
        open_ = (encode_key(OffsetKey(name, name, 1)), encode_value(OffsetCommitValue(2, name, 1)))
        batch = [Record(offset + len(records), 1, *open_)]
        yield RecordBatch.build(batch, base_sequence=0, transactional=True, producer_id=7, producer_epoch=0)
        offset += len(records) + 1


def test_what_clients_call_themselves_is_inert_on_a_terminal_and_whole_in_json(kohort: Run, tmp_path: Path) -> None:
    place = tmp_path / "hurt\x1b[31m"
    place.mkdir()
    path = place / "hostile.log"
    path.write_bytes(b"".join(batch.encode() for batch in hostile_log()) + b"cut off")
    done = kohort("state", path)
    assert done.returncode == 1
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 400
    assert done.stdout.count("<script>") == 9  # every cell that is text
    of_groups, of_offsets, waiting, removed = done.stdout.split("\n\n")
    for told, headings in ((of_groups, 1), (of_offsets, 1), (waiting, 2), (removed, 1)):
        assert len(told.splitlines()) == headings + len(HOSTILE)
    assert len(done.stderr.splitlines()) == len(HOSTILE) + 1
    state = json.loads(kohort("state", path, "--format", "json").stdout)
    assert state["groups"].keys() == set(HOSTILE)
    for name in HOSTILE:
        (member,) = state["groups"][name]["members"]
        assert {member[part] for part in ("member_id", "client_id", "client_host", "instance_id")} == {name}
    assert sorted(offset["metadata"] for offset in state["offsets"]) == sorted(HOSTILE)
