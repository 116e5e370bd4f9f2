"""Commits packed for the walk, without Spark: nothing is lost, and sums are those of a plain loop."""

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from kohort.spark.tables import packing
from kohort.spark.tables import walk_kinds as kinds
from kohort.spark.tables.bucket import POINTS, SUMS, Bucket
from tests.spark.tables.data import Row

SCHEMA = pa.schema([*packing.KEY, *packing.NUMBERS])
KINDS = [kinds.COMMIT] * 6 + [
    kinds.UNWATCHED,
    kinds.REMOVAL,
    kinds.LATER,
    kinds.LATER_REMOVAL,
    kinds.ABORTED,
    kinds.OPENED,
]


def make_rows(count: int, seed: int) -> list[Row]:
    """Records of few groups and topics, so that all kinds meet; times go back now and then, and some are not known."""
    chance = random.Random(seed)
    rows = []
    for offset in range(count):
        group, kind = chance.choice(["", "a", "b\0\ud7ff", "c" * 300]), chance.choice(KINDS)
        is_removal = kind in (kinds.REMOVAL, kinds.LATER_REMOVAL)
        rows.append(
            {
                "topic": chance.choice(["t", "u", "ü"]),
                "topic_partition": chance.choice([0, 1, -1]),
                "group": group,
                "partition": len(group) % 3,
                "kind": kind,
                "offset": offset,
                "value": None if is_removal else chance.choice([-1, 0, chance.randrange(1 << 40), (1 << 63) - 1]),
                "millis": chance.choice([None, chance.randrange(600_000), offset * 1_000]),
                "bytes": chance.randrange(40, 90),
            }
        )
    return rows


def packed(rows: list[Row], size: int, bucket_count: int = packing.BUCKETS) -> list[pa.RecordBatch]:
    """What a task gets: rows that several others have packed, sorted by bucket."""
    tasks = [rows[start::3] for start in range(3)]
    found = []
    for task in tasks:
        batches = pa.Table.from_pylist(task, schema=SCHEMA).to_batches(max_chunksize=size)
        found += [row for batch in packing.pack(batches, bucket_count) for row in batch.to_pylist()]
    found.sort(key=lambda row: row["bucket"])
    return pa.Table.from_pylist(found, schema=packing.PACKED).to_batches(max_chunksize=5)


@pytest.fixture(params=[(1, 256), (50, 256), (50, 1), (50, 10_000), (1 << 18, 256)])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Bucket]:
    pack_rows, bucket_count = request.param
    monkeypatch.setattr(packing, "_PACK_ROWS", pack_rows)
    monkeypatch.setattr(packing, "_LEAST_ROWS", 0)
    return [Bucket(keys, rows) for keys, rows in packing.unpack(packed(make_rows(600, 5), 20, bucket_count))]


def key_of(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in packing.KEY.names)


def test_every_row_comes_out_once_and_each_key_in_the_order_of_its_log(buckets: list[Bucket]) -> None:
    walked = [row for bucket in buckets for batch in bucket.batches() for row in batch.to_pylist()]
    commits = [row for row in walked if row["kind"] != kinds.CLAIM]
    wanted = [{name: row[name] for name in commits[0]} for row in make_rows(600, 5) if row["kind"] <= kinds.REMOVAL]
    assert sorted(commits, key=lambda row: row["offset"]) == wanted
    last: dict[tuple[object, ...], int] = {}
    topic_partitions = []
    for row in walked:
        if (place := key_of(row)[:2]) not in topic_partitions[-1:]:
            topic_partitions.append(place)
        if row["kind"] != kinds.CLAIM:
            assert last.setdefault(key_of(row), -1) < row["offset"]
            last[key_of(row)] = row["offset"]
    assert len(topic_partitions) == len(set(topic_partitions)) == 9


def test_claims_are_the_furthest_of_each_minute_and_come_first(buckets: list[Bucket]) -> None:
    furthest: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for row in make_rows(600, 5):
        if row["kind"] == kinds.COMMIT and row["millis"] is not None:
            of_place, moment = furthest[key_of(row)[:2]], row["millis"] // 60_000
            of_place[moment] = max(of_place.get(moment, row["value"]), row["value"])
    found: dict[tuple[object, ...], list[tuple[int, int]]] = defaultdict(list)
    begun = set()
    for bucket in buckets:
        for batch in bucket.batches():
            for row in batch.to_pylist():
                place = key_of(row)[:2]
                if row["kind"] != kinds.CLAIM:
                    begun.add(place)
                    continue
                assert place not in begun
                found[place].append((row["millis"], row["value"]))
    assert found == {
        place: [((moment + 1) * 60_000, value) for moment, value in sorted(of_place.items())]
        for place, of_place in furthest.items()
    }


def test_sums_are_those_of_a_plain_loop(buckets: list[Bucket]) -> None:
    records: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in make_rows(600, 5):
        records[key_of(row)].append(row)
    wanted = []
    for key, rows in records.items():
        told: Row = dict(zip(packing.KEY.names, key, strict=True))
        out = {"aborted": kinds.ABORTED, "open": kinds.OPENED}
        parts = {name: [row for row in rows if row["kind"] == kind] for name, kind in out.items()}
        counted = parts["counted"] = [row for row in rows if row["kind"] not in out.values()]
        for name, part in parts.items():
            told |= {f"{name}_records": len(part), f"{name}_bytes": sum(row["bytes"] for row in part)}
        times = [row["millis"] for row in counted if row["value"] is not None and row["millis"] is not None]
        told |= {
            "commits": len(times),
            "first_millis": min(times, default=None),
            "last_millis": max(times, default=None),
        }
        told["last_bytes"] = counted[-1]["bytes"] if counted else None
        told["is_removed"] = counted[-1]["value"] is None if counted else None
        wanted.append(told)
    found = [row for bucket in buckets for row in bucket.sums().to_pylist()]
    assert set(found[0]) == set(SUMS.names)
    assert sorted(found, key=str) == sorted(({name: row[name] for name in SUMS.names} for row in wanted), key=str)


def test_points_are_the_minutes_in_which_the_furthest_went_on(buckets: list[Bucket]) -> None:
    furthest: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for row in make_rows(600, 5):
        is_commit = row["kind"] in (kinds.COMMIT, kinds.UNWATCHED)
        if is_commit and row["millis"] is not None and row["value"] >= 0:
            of_place, moment = furthest[key_of(row)[:2]], row["millis"] // 60_000
            of_place[moment] = max(of_place.get(moment, -1), row["value"])
    wanted = set()
    for place, of_place in furthest.items():
        reached = -1
        for moment, value in sorted(of_place.items()):
            if value > reached:
                wanted.add((*place, value, moment))
                reached = value
    rows = [row for bucket in buckets for row in bucket.points().to_pylist()]
    assert set(rows[0]) == set(POINTS.names)
    found = [(row["topic"], row["topic_partition"], row["committed_offset"], row["millis"] // 60_000) for row in rows]
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_a_bucket_does_not_grow_with_the_log() -> None:
    """60 billion commits, which are 5 TB, go into buckets that a task can hold."""
    assert packing.buckets_for(0) == packing.buckets_for(10_000_000) == packing.BUCKETS
    for commits in (2_000_000_000, 12_000_000_000, 60_000_000_000):
        assert commits / packing.buckets_for(commits) <= packing.BUCKET_ROWS
