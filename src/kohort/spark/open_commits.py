"""Commits whose transaction is open, kept apart while a log is followed: their rows change when it ends.

In `offset_commits` they stand in a file of their own. Whatever is decided by a marker that came since leaves it, with
its fate, for the files that never change.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kohort.spark.arrays import time_or_none
from kohort.spark.schema import arrow_schema_of
from kohort.spark.writing import open_table

TABLE = "offset_commits"
FILE = "part-open.snappy.parquet"

_SCHEMA = arrow_schema_of(TABLE)
_FATES = {"commit": "committed", "abort": "aborted"}
_MARKER = ("partition", "offset", "timestamp", "producer_id", "control_type")


def take_open(files: Iterable[Path]) -> pa.Table:
    """The open commits of some files, which do not hold them any more afterwards."""
    found = []
    for path in files:
        with pq.ParquetFile(path) as file:
            is_open = pc.equal(file.read(["fate"]).column("fate"), "open")
            if not pc.any(is_open).as_py():
                continue
            partial = path.with_name(f".{path.name}")
            with open_table(TABLE, str(partial)) as kept:
                for group in range(file.num_row_groups):
                    rows = typed(file.read_row_group(group))
                    chosen = pc.equal(rows.column("fate"), "open")
                    found.append(rows.filter(chosen))
                    kept.write_table(rows.filter(pc.invert(chosen)))
        os.replace(partial, path)
    return pa.concat_tables([_SCHEMA.empty_table(), *found])


def markers_in(files: Iterable[Path]) -> list[dict[str, object]]:
    """The ends of transactions in some files of `records`, in the order of the log."""
    rows = []
    for path in files:
        read = pq.read_table(path, columns=list(_MARKER), filters=pc.field("control"))
        rows += [row for row in read.to_pylist() if row["control_type"] in _FATES]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def decide(commits: pa.Table, markers: Iterable[dict[str, object]]) -> tuple[pa.Table, pa.Table]:
    """Open commits, by what came behind them: those that are decided now, with their fates, and those that are not."""
    first: dict[tuple[object, object], dict[str, object]] = {}
    for marker in markers:
        first.setdefault((marker["partition"], marker["producer_id"]), marker)
    decided, undecided = [], []
    for row in commits.to_pylist():
        marker_of_row = first.get((row["partition"], row["producer_id"]))
        if marker_of_row is None:
            undecided.append(row)
            continue
        timestamp = marker_of_row["timestamp"]
        assert isinstance(timestamp, int)
        decided.append(
            row
            | {
                "fate": _FATES[str(marker_of_row["control_type"])],
                "decided_offset": marker_of_row["offset"],
                "decided_timestamp": time_or_none(timestamp),
            }
        )
    return pa.Table.from_pylist(decided, _SCHEMA), pa.Table.from_pylist(undecided, _SCHEMA)


def write_commits(rows: pa.Table, path: Path) -> None:
    """A file of `offset_commits`."""
    with open_table(TABLE, str(path)) as file:
        file.write_table(rows)


def read_commits(path: Path) -> pa.Table:
    return typed(pq.ParquetFile(path).read())


def typed(rows: pa.Table) -> pa.Table:
    """Rows of `offset_commits` as this package writes them, whoever has read them."""
    return rows.select(_SCHEMA.names).cast(_SCHEMA)
