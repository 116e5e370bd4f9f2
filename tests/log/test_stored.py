"""Files that somebody left, found and read without being touched."""

from pathlib import Path

import pytest

from kohort.errors import CorruptLog
from kohort.log import stored
from kohort.log.stored import find_partitions
from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.key_table import KeyTable
from tests.golden_sets import GOLDEN


def batch(offset: int) -> bytes:
    return RecordBatch.build([Record(offset, 0, b"k", b"v")]).encode()


def write(directory: Path, **files: int) -> None:
    for name, offset in files.items():
        path = directory / name.replace("_", ".")
        path.write_bytes(batch(offset) if offset >= 0 else b"")


def names(directory: Path) -> list[str]:
    (partition,) = find_partitions(str(directory), "t")
    return [Path(path).name for path in partition.segments]


ZERO, TEN, TWENTY = "0" * 20, "0" * 18 + "10", "0" * 18 + "20"


def test_segments_come_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    write(tmp_path, **{f"{TEN}_log": 10, f"{ZERO}_log": 0, f"{TWENTY}_log_deleted": 20, f"{ZERO}_index": 0})
    assert names(tmp_path) == [f"{ZERO}.log", f"{TEN}.log"]


def test_a_finished_swap_stands_for_what_it_replaces(tmp_path: Path) -> None:
    write(tmp_path, **{f"{ZERO}_log": 0, f"{TEN}_log": 10, f"{TWENTY}_log": 20})
    write(tmp_path, **{f"{ZERO}_log_swap": 12, f"{TEN}_log_swap": -1})
    assert names(tmp_path) == [f"{ZERO}.log.swap", f"{TEN}.log.swap", f"{TWENTY}.log"]


def test_a_swap_beside_a_cleaned_file_is_void(tmp_path: Path) -> None:
    write(tmp_path, **{f"{ZERO}_log": 0, f"{TEN}_log": 10, f"{ZERO}_log_cleaned": 5, f"{TEN}_log_swap": -1})
    assert names(tmp_path) == [f"{ZERO}.log", f"{TEN}.log"]


@pytest.mark.parametrize("window", [64, 700, 4096])
def test_columns_do_not_depend_on_the_window(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does damage: a walk that meets it goes on where the scalar one goes on."""
    monkeypatch.setattr(stored, "_WINDOW", window)
    for number, path in GOLDEN[0].segments():
        (partition,) = find_partitions(str(path), "any") if path.stat().st_size else (None,)
        if partition is None:
            continue
        want = [record.offset for found in read_batches(path.read_bytes()) for record in found.records]
        got: list[int] = []
        for columns in partition.columns(KeyTable(), _raise, lambda _: None):
            got += columns.offsets.tolist()
        assert got == want
        assert partition.partition == number


@pytest.mark.parametrize("window", [64, 300, 4096])
def test_damage_is_told_the_same_whatever_the_window(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_WINDOW", window)
    data = b"".join(batch(offset) for offset in range(12))
    size = len(batch(0))
    for at in (size - 1, 3 * size + 9, 5 * size + 16, 7 * size + 65, len(data) - 1):
        hurt = bytearray(data)
        hurt[at] ^= 0x41
        path = tmp_path / f"{at}.log"
        path.write_bytes(hurt)
        want: list[CorruptLog] = []
        offsets = [r.offset for found in read_batches(bytes(hurt), on_damage=want.append) for r in found.records]
        (partition,) = find_partitions(str(path), "any")
        told: list[CorruptLog] = []
        got: list[int] = []
        for columns in partition.columns(KeyTable(), told.append, lambda _: None):
            got += columns.offsets.tolist()
        assert got == offsets
        assert [(d.position, d.reason) for d in told] == [(d.position, d.reason) for d in want]
        assert {d.path for d in told} == {str(path)}


def _raise(damage: CorruptLog) -> None:
    raise damage
