"""`kohort state`."""

import json
from pathlib import Path

import pytest

from kohort.records.batch import read_batches
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
