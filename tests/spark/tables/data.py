"""Small tables written by hand: rows in, DataFrames out, and back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.schema import arrow_schema_of

Row = dict[str, Any]

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """An instant, in seconds from when the tests begin."""
    return START + timedelta(seconds=seconds)


def frame(spark: SparkSession, table: str, rows: Iterable[Row]) -> DataFrame:
    """Rows of a table; what a row does not name is NULL."""
    rows = list(rows)
    schema = arrow_schema_of(table)
    unknown = {name for row in rows for name in row} - set(schema.names)
    assert not unknown, f"{table} has no columns {unknown}"
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def rows_of(table: DataFrame, *order: str) -> list[Row]:
    """The rows of a table as plain values, in the order of some columns; instants in UTC."""
    rows: list[Row] = table.toArrow().to_pylist()
    return sorted(rows, key=lambda row: [row[name] for name in order])


def commit(offset: int, committed: int | None, seconds: float = 0.0, **changes: Any) -> Row:
    """A row of `offset_commits`; a tombstone if nothing is committed."""
    row: Row = {
        "partition": 0,
        "offset": offset,
        "timestamp": at(seconds),
        "group": "g",
        "topic": "t",
        "topic_partition": 0,
        "committed_offset": committed,
        "leader_epoch": None if committed is None else -1,
        "metadata": None if committed is None else "",
        "commit_timestamp": None if committed is None else at(seconds),
        "tombstone": committed is None,
        "producer_id": -1,
        "producer_epoch": -1,
        "transactional": False,
        "fate": "plain",
        "batch_offset": offset,
        "bytes": 100,
    }
    return row | changes


@dataclass
class M:
    """A member as a test writes it; `owns` are partitions such as t-0."""

    id: str
    owns: Sequence[str] = ()
    instance: str | None = None
    client: str = "client"
    host: str = "/10.0.0.1"
    topics: Sequence[str] | None = ("t",)
    rebalance_timeout: int = 60_000


@dataclass
class GroupLog:
    """A log of group records, from which the three tables of groups are made."""

    generations: list[Row] = field(default_factory=list)
    members: list[Row] = field(default_factory=list)
    assignments: list[Row] = field(default_factory=list)

    def write(
        self,
        generation: int,
        *members: M,
        seconds: float = 0.0,
        joined: float | None = None,
        group: str = "g",
        partition: int = 0,
        protocol: str | None = "range",
        protocol_type: str = "consumer",
        leader: str | None = None,
    ) -> None:
        """The record of a generation; its first member leads, unless told otherwise."""
        leader = leader or (members[0].id if members else None)
        place = self._place(seconds, group, partition)
        self.generations.append(
            place
            | {
                "protocol_type": protocol_type,
                "generation": generation,
                "protocol": protocol if members else None,
                "leader": leader,
                "state_timestamp": None if joined is None else at(joined),
                "member_count": len(members),
                "tombstone": False,
                "bytes": 200,
            }
        )
        for member in members:
            self._add(place | {"generation": generation}, member, is_leader=member.id == leader)

    def remove(self, seconds: float = 0.0, group: str = "g", partition: int = 0) -> None:
        self.generations.append(self._place(seconds, group, partition) | {"tombstone": True, "bytes": 30})

    def tables(self, spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
        return (
            frame(spark, "group_generations", self.generations),
            frame(spark, "members", self.members),
            frame(spark, "assignments", self.assignments),
        )

    def _place(self, seconds: float, group: str, partition: int) -> Row:
        return {"partition": partition, "offset": len(self.generations) * 10, "timestamp": at(seconds), "group": group}

    def _add(self, place: Row, member: M, *, is_leader: bool) -> None:
        self.members.append(
            place
            | {
                "member_id": member.id,
                "client_id": member.client,
                "client_host": member.host,
                "instance_id": member.instance,
                "session_timeout": 10_000,
                "rebalance_timeout": member.rebalance_timeout,
                "subscription": None if member.topics is None else list(member.topics),
                "is_leader": is_leader,
            }
        )
        for owned in member.owns:
            topic, _, number = owned.rpartition("-")
            self.assignments.append(
                place
                | {
                    "member_id": member.id,
                    "instance_id": member.instance,
                    "topic": topic,
                    "topic_partition": int(number),
                }
            )
