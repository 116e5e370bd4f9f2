"""All tables over all logs of real brokers at once: nothing is missing, and they agree with each other."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from kohort.spark import reading
from kohort.spark.finishing import finished
from kohort.spark.folding import fold
from kohort.spark.inputs import find_logs, share_out
from kohort.spark.request import Request
from kohort.spark.schema import arrow_schema_of, columns_of
from kohort.spark.tables.expiry import expiry
from kohort.spark.tables.group_status import group_status
from kohort.spark.tables.lag import lag, lag_history
from kohort.spark.tables.lag_status import lag_status
from kohort.spark.tables.offset_jumps import offset_jumps
from kohort.spark.tables.rebalances import rebalances
from kohort.spark.tables.topic_health import topic_health
from kohort.spark.tables.walk import JumpRules, walk
from tests.spark.tables.data import Row, rows_of

GOLDEN = Path(__file__).parents[2] / "golden"
SETS = sorted(path.parent.name for path in GOLDEN.glob("*/state.json"))
AS_OF = datetime(2030, 1, 1, tzinfo=UTC)

Tables = dict[str, DataFrame]


@pytest.fixture(scope="module")
def base(spark: SparkSession) -> Tables:
    """The tables that are read or replayed, of all sets; each set has partitions of its own."""
    read = ("offset_commits", "group_generations", "members", "assignments")
    replayed = ("current_groups", "current_offsets", "pending_offsets")
    parts: dict[str, list[pa.Table]] = {name: [] for name in read + replayed}
    for number, directory in enumerate(SETS):
        (stretches,) = share_out(find_logs([str(GOLDEN / directory)]), 1)
        pieces = list(fold(stretches, Request("folded", ()), 0))
        for name in read:
            schema = arrow_schema_of(name)
            batches = reading.read(stretches, Request(name, tuple(schema.names)))
            parts[name].append(_moved(pa.Table.from_batches(batches, schema), number))
        for name in replayed:
            parts[name].append(_moved(finished(name, pieces), number))
    return {name: spark.createDataFrame(pa.concat_tables(tables)) for name, tables in parts.items()}


def _moved(table: pa.Table, number: int) -> pa.Table:
    place = table.schema.get_field_index("partition")
    moved = pc.add(table.column(place), 100 * number).cast(pa.int32())
    return table.set_column(place, table.schema.field(place), moved)


@pytest.fixture(scope="module")
def derived(base: Tables) -> dict[str, list[Row]]:
    commits, generations = base["offset_commits"], base["group_generations"]
    walked = walk(commits, as_of=AS_OF, jumps=JumpRules(least_messages=1), every_commit=True).cache()
    status = lag_status(commits, as_of=AS_OF, walked=walked).cache()
    tables = {
        "rebalances": rebalances(generations, base["members"], base["assignments"]),
        "lag": lag(base["current_offsets"], commits=commits, walked=walked, as_of=AS_OF),
        "lag_history": lag_history(commits),
        "lag_status": status,
        "group_status": group_status(status),
        "expiry": expiry(base["current_offsets"], base["current_groups"], base["pending_offsets"], now=AS_OF),
        "topic_health": topic_health(commits, generations, walked=walked),
        "offset_jumps": offset_jumps(
            commits, generations, base["members"], base["assignments"], rules=JumpRules(least_messages=1), walked=walked
        ),
    }
    rows = {name: rows_of(table) for name, table in tables.items()}
    status.unpersist()
    walked.unpersist()
    return rows


def test_what_is_not_said_to_be_null_never_is(derived: dict[str, list[Row]]) -> None:
    for table, rows in derived.items():
        assert rows, table
        never = [column.name for column in columns_of(table) if "NULL" not in column.comment]
        missing = {name for row in rows for name in never if row[name] is None}
        assert not missing, table


def test_every_column_says_what_it_is(derived: dict[str, list[Row]]) -> None:
    for table, rows in derived.items():
        assert list(rows[0]) == [column.name for column in columns_of(table)]
        assert all(column.comment for column in columns_of(table))


STORIES = {
    "g-dynamic": ["first_generation", "member_joined", "member_left"],
    "g-cooperative": ["first_generation", "member_joined", "cooperative_handover", "member_left"],
    "g-static": ["first_generation", *["static_member_replaced"] * 2, "member_joined", "member_left"],
    "g-recreated": ["first_generation", "group_emptied", "group_removed", "first_generation"],
    "connect-cluster": ["first_generation", "member_joined"],
    "g-emptied": ["first_generation", "group_emptied"],
}


@pytest.mark.parametrize("broker", ["k26", "k39", "k40", "k41"])
def test_groups_of_every_broker_tell_the_story_that_its_clients_lived(
    derived: dict[str, list[Row]], broker: str
) -> None:
    told: dict[str, list[str]] = {}
    for row in sorted(derived["rebalances"], key=lambda row: (row["partition"], row["offset"])):
        if row["cause"] != "group_created":
            told.setdefault(row["group"], []).append(row["cause"])
    stories = {group: story for group, story in STORIES.items() if (broker, group) != ("k40", "g-cooperative")}
    assert {group: told[f"{broker}.{group}"] for group in stories} == stories


def test_the_assignment_phase_of_a_real_rebalance_takes_milliseconds(derived: dict[str, list[Row]]) -> None:
    took = [row["sync_seconds"] for row in derived["rebalances"] if row["sync_seconds"] is not None]
    assert len(took) > 100
    assert all(0 <= seconds < 5 for seconds in took)
    whole = [row["duration_seconds"] for row in derived["rebalances"] if row["duration_seconds"] is not None]
    assert len(whole) > 10
    assert all(0 < seconds < 60 for seconds in whole)


def test_live_records_are_the_current_offsets_and_the_groups_that_stand(
    base: Tables, derived: dict[str, list[Row]]
) -> None:
    live = Counter({row["group"]: row["live_records"] for row in derived["topic_health"] if row["scope"] == "group"})
    standing: Counter[str] = Counter(row["group"] for row in rows_of(base["current_offsets"]))
    last: dict[tuple[int, str], Row] = {}
    for row in rows_of(base["group_generations"], "partition", "offset"):
        last[row["partition"], row["group"]] = row
    standing.update(group for (_, group), row in last.items() if not row["tombstone"])
    assert +live == +standing


def test_there_is_lag_and_a_forecast_for_every_current_offset(base: Tables, derived: dict[str, list[Row]]) -> None:
    def keys(rows: list[Row]) -> Counter[tuple[str, str, int, int]]:
        return Counter((row["group"], row["topic"], row["topic_partition"], row["committed_offset"]) for row in rows)

    current = keys(rows_of(base["current_offsets"]))
    assert keys(derived["lag"]) == current
    assert keys(derived["expiry"]) == current


def test_every_commit_that_counted_has_its_lag_and_its_status(base: Tables, derived: dict[str, list[Row]]) -> None:
    counted = {
        (row["partition"], row["offset"])
        for row in rows_of(base["offset_commits"])
        if row["fate"] in ("plain", "committed") and not row["tombstone"]
    }
    assert {(row["partition"], row["offset"]) for row in derived["lag_history"]} == counted
    assert {(row["partition"], row["offset"]) for row in derived["lag_status"]} == counted


def test_the_last_status_of_every_current_offset_is_told(base: Tables, derived: dict[str, list[Row]]) -> None:
    now = Counter(row["group"] for row in derived["lag_status"] if row["ended_by"] == "now")
    assert now == Counter(row["group"] for row in rows_of(base["current_offsets"]))
    assert {row["status"] for row in derived["group_status"] if row["until"] is None} == {"NOTFOUND"}
