"""Stretches as tables: every cell as the scalar codec has it, however the log is cut. No Spark is needed."""

import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kohort.errors import CorruptLog
from kohort.log import stretch as stretches
from kohort.records.arrow import from_rows
from kohort.records.batch import Record, RecordBatch
from kohort.records.offsets_topic import (
    GroupMetadataValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)
from kohort.records.rows import describe
from kohort.spark.inputs import LogChanged, find_logs, share_out
from kohort.spark.reading import read
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of, columns_of
from tests.golden_sets import GOLDEN, GoldenSet
from tests.spark.golden_tables import batches_of, fates_of, instant

every_set = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)

COUNTS = (1, 2, 7, 50)


def rows_of(path: Path | Sequence[Path], table: str, shares: int | None = 1, **request: Any) -> list[dict[str, Any]]:
    """All rows of a table, read share by share."""
    wanted = tuple(request.pop("columns", ())) or tuple(column.name for column in columns_of(table))
    paths = [str(path)] if isinstance(path, Path) else [str(one) for one in path]
    asked = Request(table, wanted, **request)
    batches = [batch for share in share_out(find_logs(paths), shares) for batch in read(share, asked)]
    for batch in batches:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            assert field.nullable or not column.null_count, f"{table}.{field.name} promises a value in every row"
    return [row for batch in batches for row in batch.to_pylist()]


def described(golden: GoldenSet) -> Iterator[dict[str, Any]]:
    for partition, paths in golden.partitions().items():
        for batch in batches_of(paths):
            for record in batch.records:
                yield describe(partition, batch.header, record)


@every_set
def test_records_are_those_of_the_scalar_codec(golden: GoldenSet) -> None:
    want = from_rows(described(golden)).to_pylist()
    for count in COUNTS:
        assert rows_of(golden.path, "records", count) == want


@every_set
def test_commits_have_every_cell_right_wherever_their_markers_stand(golden: GoldenSet) -> None:
    want = []
    for partition, paths in golden.partitions().items():
        batches = batches_of(paths)
        fates = fates_of(batches)
        for batch in batches:
            for record in batch.records:
                row = describe(partition, batch.header, record)
                if row["kind"] != "offset_commit" or "reason" in row:
                    continue
                fate, decided_offset, decided_time = fates[record.offset]
                same = ("partition", "offset", "group", "topic", "topic_partition", "tombstone", "transactional")
                value = ("committed_offset", "leader_epoch", "metadata")
                want.append(
                    {name: row[name] for name in (*same, "producer_id", "producer_epoch")}
                    | {name: row.get(name) for name in value}
                    | {
                        "timestamp": instant(row["timestamp"]),
                        "commit_timestamp": instant(row.get("commit_timestamp")),
                        "expire_timestamp": instant(row.get("expire_timestamp")),
                        "fate": fate,
                        "decided_offset": decided_offset,
                        "decided_timestamp": instant(decided_time),
                    }
                )
    for count in COUNTS:
        rows = rows_of(golden.path, "offset_commits", count)
        assert [{name: row[name] for name in want[0]} for row in rows] == want


@every_set
def test_commits_tell_their_batch_and_how_many_bytes_they_take(golden: GoldenSet) -> None:
    """In a batch that is not compressed its records fill all that is behind the header."""
    rows = rows_of(golden.path, "offset_commits") + rows_of(golden.path, "group_generations")
    sizes = {(row["partition"], row["offset"]): row["bytes"] for row in rows}
    batch_of = {(row["partition"], row["offset"]): row.get("batch_offset") for row in rows}
    checked = 0
    for partition, paths in golden.partitions().items():
        for batch in batches_of(paths):
            places = [(partition, record.offset) for record in batch.records]
            for place in places:
                if batch_of.get(place) is not None and batch.header.magic == 2:
                    assert batch_of[place] == batch.header.base_offset
            if (
                places
                and all(place in sizes for place in places)
                and batch.header.magic == 2
                and not batch.header.codec
            ):
                assert sum(sizes[place] for place in places) == batch.header.size - 61
                checked += 1
    assert checked or golden.name in ("kafka-2.6.3-ibp-0.10.0", "compressed-gzip")


@every_set
def test_groups_members_and_assignments_are_what_the_records_say(golden: GoldenSet) -> None:
    generations, members, assignments = [], [], []
    for row in described(golden):
        if row["kind"] != "group_metadata" or "reason" in row:
            continue
        place = (row["partition"], row["offset"], row["group"], instant(row["timestamp"]))
        told = [row.get(name) for name in ("protocol_type", "generation", "protocol", "leader")]
        count = None if row["tombstone"] else len(row["members"])
        generations.append((*place, *told, instant(row.get("state_timestamp")), count, row["tombstone"]))
        for member in row.get("members", ()):
            taken = ("member_id", "client_id", "client_host", "instance_id", "session_timeout", "rebalance_timeout")
            leads = member["member_id"] == row["leader"]
            of_member = [member[name] for name in (*taken, "subscription")]
            members.append((*place, row["generation"], *of_member, leads))
            assignments += [
                (*place, row["generation"], member["member_id"], member["instance_id"], topic, partition)
                for topic, partition in member["assignment"] or ()
            ]
    for table, want, left_out in (
        ("group_generations", generations, ("bytes",)),
        ("members", members, ()),
        ("assignments", assignments, ()),
    ):
        for count in COUNTS:
            rows = rows_of(golden.path, table, count)
            first = ("partition", "offset", "group", "timestamp")
            rest = [column.name for column in columns_of(table) if column.name not in (*first, *left_out)]
            assert [tuple(row[name] for name in (*first, *rest)) for row in rows] == want


@pytest.mark.parametrize("window", [200, 3000])
def test_fates_do_not_depend_on_windows(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = GOLDEN[-1].path
    want = rows_of(path, "offset_commits")
    monkeypatch.setattr(stretches, "WINDOW_BYTES", window)
    monkeypatch.setattr(stretches, "_SMALLEST_GROWTH", 64)
    for count in (1, 7):
        assert rows_of(path, "offset_commits", count) == want


def write_log(directory: Path, batches: Sequence[bytes], per_segment: int) -> Path:
    """Batches, which hold one record each, as the segments of a partition."""
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    for base in range(0, len(batches), per_segment):
        (partition / f"{base:020d}.log").write_bytes(b"".join(batches[base : base + per_segment]))
    return partition


def commit(offset: int, *, producer: int = -1, metadata: str = "", group: str = "g") -> bytes:
    key, value = OffsetKey(group, "t", 0), OffsetCommitValue(offset * 10, metadata, 1_700_000_000_000 + offset)
    record = Record(offset, 1_700_000_000_000 + offset, encode_key(key), encode_value(value))
    return RecordBatch.build([record], transactional=producer >= 0, producer_id=producer).encode()


def marker(offset: int, producer: int, kind: int) -> bytes:
    record = Record(offset, offset, b"\0\0\0" + bytes([kind]), bytes(6))
    return RecordBatch.build([record], transactional=True, control=True, producer_id=producer).encode()


def test_a_marker_is_found_in_any_later_segment(tmp_path: Path) -> None:
    """Also where many segments lie between, and another producer's markers, and control records of another kind."""
    batches = [commit(0, producer=5), commit(1, producer=6), *(commit(n) for n in range(2, 20))]
    batches += [marker(20, 7, 1), marker(21, 5, 3), marker(22, 5, 1), marker(23, 6, 0)]
    path = write_log(tmp_path, batches, per_segment=3)
    for count in (1, 2, 7, 24):
        rows = rows_of(path, "offset_commits", count)
        fates = [(row["fate"], row["decided_offset"]) for row in rows]
        assert fates == [("committed", 22), ("aborted", 23), *[("plain", None)] * 18]


def test_a_hanging_transaction_stays_open_and_is_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, [commit(n, producer=5) for n in range(40)], per_segment=10)
    looked: list[int] = []
    original = stretches.markers

    def counted(*args: Any) -> Iterator[stretches.Marker]:
        looked.append(1)
        return original(*args)

    monkeypatch.setattr("kohort.spark.reading.markers", counted)
    assert {row["fate"] for row in rows_of(path, "offset_commits")} == {"open"}
    assert len(looked) == 4


def test_a_marker_that_came_after_the_log_was_listed_does_not_count(tmp_path: Path) -> None:
    path = write_log(tmp_path, [commit(0, producer=5), commit(1)], per_segment=2)
    (share,) = share_out(find_logs([str(path)]), 1)
    with (path / f"{0:020d}.log").open("ab") as file:
        file.write(marker(2, 5, 1) + commit(3))
    (path / f"{4:020d}.log").write_bytes(marker(4, 5, 1))
    columns = ("offset", "fate")
    rows = [row for batch in read(share, Request("offset_commits", columns)) for row in batch.to_pylist()]
    assert rows == [{"offset": 0, "fate": "open"}, {"offset": 1, "fate": "plain"}]


def test_only_the_columns_that_are_asked_for_are_made(tmp_path: Path) -> None:
    path = write_log(tmp_path, [commit(0, metadata="m")], per_segment=1)
    assert rows_of(path, "offset_commits", columns=["metadata", "group"]) == [{"metadata": "m", "group": "g"}]
    assert rows_of(path, "records", columns=["offset", "kind"]) == [{"offset": 0, "kind": "offset_commit"}]
    assert rows_of(path, "quarantine", columns=["reason"]) == []


def test_times_groups_and_topics_narrow_what_is_read(tmp_path: Path) -> None:
    batches = [commit(n, group="ab"[n % 2]) for n in range(10)]
    path = write_log(tmp_path, batches, per_segment=4)

    def offsets(table: str = "offset_commits", **request: Any) -> list[int]:
        return [row["offset"] for row in rows_of(path, table, **request)]

    start = 1_700_000_000_000
    assert offsets(starting=start + 3) == [3, 4, 5, 6, 7, 8, 9]
    assert offsets(ending=start + 3) == [0, 1, 2, 3]
    assert offsets(starting=start + 2, ending=start + 3, groups=frozenset("b")) == [3]
    assert offsets(groups=frozenset("x")) == []
    assert offsets(topics=frozenset("t")) == list(range(10))
    assert offsets(topics=frozenset("t"), table="records", groups=frozenset("a")) == [0, 2, 4, 6, 8]


def test_a_time_that_spark_cannot_hold_is_null_and_stands_in_records(tmp_path: Path) -> None:
    late = 253_402_300_800_000
    key = encode_key(OffsetKey("g", "t", 0))
    records = [
        Record(n, time, key, encode_value(OffsetCommitValue(1, "", time))) for n, time in enumerate((late, -1, 0))
    ]
    path = write_log(tmp_path, [RecordBatch.build(records).encode()], per_segment=1)
    rows = rows_of(path, "offset_commits", columns=["timestamp", "commit_timestamp", "expire_timestamp"])
    assert [list(row.values()) for row in rows] == [[None] * 3, [None] * 3, [instant(0), instant(0), None]]
    assert [row["timestamp"] for row in rows_of(path, "records")] == [late, -1, 0]


def test_values_that_only_the_scalar_codec_reads_keep_their_place(tmp_path: Path) -> None:
    """A value with a tagged field of tomorrow, and one that nobody can read, which is left to `records`."""
    key = encode_key(OffsetKey("g", "t", 0))
    tagged = encode_value(OffsetCommitValue(7, "tagged", 5, version=4))[:-1] + b"\x01\x05\x01\xaa"
    values = [encode_value(OffsetCommitValue(1, "first", 5)), tagged, b"\x7f\xff nonsense", None]
    records = [Record(n, 5, key, value) for n, value in enumerate(values)]
    path = write_log(tmp_path, [RecordBatch.build(records).encode()], per_segment=1)
    rows = rows_of(path, "offset_commits", columns=["offset", "committed_offset", "metadata", "tombstone"])
    assert [tuple(row.values()) for row in rows] == [
        (0, 1, "first", False),
        (1, 7, "tagged", False),
        (3, None, None, True),
    ]
    assert [row["reason"] is not None for row in rows_of(path, "records")] == [False, False, True, False]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    hostile = ["<script>", "=cmd()", "a\0b", "x" * 32_000, "'; drop table t; --", "\u202e", "${sys:user.home}"]
    batches = [commit(n, group=text, metadata=text) for n, text in enumerate(hostile)]
    lone = encode_key(OffsetKey("g", "t", 0))[:4] + b"\xed" + encode_key(OffsetKey("g", "t", 0))[5:]
    batches.append(
        RecordBatch.build([Record(len(hostile), 5, lone, encode_value(OffsetCommitValue(1, "", 5)))]).encode()
    )
    path = write_log(tmp_path, batches, per_segment=99)
    rows = rows_of(path, "offset_commits", columns=["group", "metadata"])
    assert [row["group"] for row in rows] == [*hostile, "�"]
    assert [row["metadata"] for row in rows] == [*hostile, ""]


def test_many_keys_are_forgotten_and_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.spark.reading._MOST_KEYS", 3)
    monkeypatch.setattr(stretches, "WINDOW_BYTES", 300)
    path = write_log(tmp_path, [commit(n, group=f"g{n % 11}") for n in range(50)], per_segment=20)
    assert [row["group"] for row in rows_of(path, "offset_commits")] == [f"g{n % 11}" for n in range(50)]


@every_set
def test_records_and_quarantine_are_all_records(golden: GoldenSet, tmp_path: Path) -> None:
    """One batch after the other is spoiled in its body: what is missing in one table stands in the other."""
    whole = len(list(described(golden)))
    for number, (partition, path) in enumerate(golden.segments()[:4]):
        for batch in batches_of([path])[::9]:
            if not batch.records or batch.header.magic < 2:
                continue
            copy = tmp_path / f"{number}-{batch.header.position}"
            shutil.copytree(golden.path, copy)
            data = bytearray(path.read_bytes())
            data[batch.header.end - 1] ^= 0xFF
            (copy / path.parent.name / path.name).write_bytes(data)
            for count in (1, 7):
                told = rows_of(copy, "quarantine", count)
                assert [(row["partition"], row["position"], row["offset"], row["records"]) for row in told] == [
                    (partition, batch.header.position, batch.header.base_offset, len(batch.records))
                ]
                assert told[0]["raw"] == bytes(data[batch.header.position :][:1024])
                assert "checksum" in told[0]["reason"]
                assert len(rows_of(copy, "records", count)) + sum(row["records"] for row in told) == whole
            with pytest.raises(CorruptLog, match=f"{path.name}, byte {batch.header.position}: checksum"):
                rows_of(copy, "records", fail_fast=True)
            shutil.rmtree(copy)


def test_a_truncated_segment_tells_where_it_ends(tmp_path: Path) -> None:
    batches = [commit(n) for n in range(3)]
    path = write_log(tmp_path, batches, per_segment=3)
    segment = path / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-10])
    (row,) = rows_of(path, "quarantine")
    assert (row["position"], row["records"]) == (len(batches[0] + batches[1]), 1)
    assert "cut off" in row["reason"]
    assert [row["offset"] for row in rows_of(path, "offset_commits")] == [0, 1]


def test_what_loses_the_way_says_how_much_is_lost(tmp_path: Path) -> None:
    batches = [commit(n) for n in range(4)]
    path = write_log(tmp_path, batches, per_segment=4)
    segment = path / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[len(batches[0]) + 8 : len(batches[0]) + 12] = b"\xff\xff\xff\xff"
    segment.write_bytes(data)
    for count in (1, 2, 7):
        (row,) = rows_of(path, "quarantine", count)
        assert row["reason"].endswith(f"no batch can be found in the {len(data) - len(batches[0])} bytes from there on")
        assert [row["offset"] for row in rows_of(path, "offset_commits", count)] == [0]


@pytest.mark.parametrize("change", ["gone", "shorter", "longer"])
def test_a_log_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: str) -> None:
    """The cleaner replaces segments: half of one log and half of another would be a wrong table."""
    path = write_log(tmp_path, [commit(n) for n in range(4)], per_segment=2)
    shares = share_out(find_logs([str(path)]), 1)
    segment = path / f"{0:020d}.log"
    if change == "gone":
        segment.unlink()
    else:
        segment.write_bytes(segment.read_bytes()[:-10] if change == "shorter" else segment.read_bytes() + commit(9))
    with pytest.raises(LogChanged, match=r"00\.log: .*the log changed while it was read"):
        list(read(shares[0], Request("offset_commits", ("offset",))))


def test_a_log_may_grow_at_its_end_while_it_is_read(tmp_path: Path) -> None:
    path = write_log(tmp_path, [commit(n) for n in range(4)], per_segment=2)
    shares = share_out(find_logs([str(path)]), 1)
    with (path / f"{2:020d}.log").open("ab") as file:
        file.write(commit(4))
    batches = read(shares[0], Request("offset_commits", ("offset",)))
    assert [row["offset"] for batch in batches for row in batch.to_pylist()] == [0, 1, 2, 3]


def test_batches_have_the_types_of_the_table_and_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kohort.spark.reading.BATCH_ROWS", 7)
    path = write_log(tmp_path, [commit(n) for n in range(20)], per_segment=20)
    for table in ("records", "offset_commits", "group_generations", "members", "assignments", "quarantine"):
        columns = columns_of(table)
        for batch in itertools.chain.from_iterable(
            read(share, Request(table, tuple(column.name for column in columns)))
            for share in share_out(find_logs([str(path)]), 2)
        ):
            assert batch.schema == arrow_schema_of(table)
            assert len(batch) <= 7
            batch.validate(full=True)


def test_group_records_that_cannot_be_read_are_left_to_records(tmp_path: Path) -> None:
    value = encode_value(GroupMetadataValue("consumer", 3, "range", "m", (), 5))
    key = b"\0\2\0\1g"
    records = [Record(0, 5, key, value), Record(1, 5, key, b"\0\1 nonsense"), Record(2, 5, key, None)]
    path = write_log(tmp_path, [RecordBatch.build(records).encode()], per_segment=1)
    rows = rows_of(path, "group_generations", columns=["offset", "generation", "tombstone"])
    assert [tuple(row.values()) for row in rows] == [(0, 3, False), (2, None, True)]
    assert rows_of(path, "members") == []
