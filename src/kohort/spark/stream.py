"""The data source as a stream: `spark.readStream.format("kohort")`, of files that grow or of a live cluster.

What a micro-batch holds is fixed by two marks a partition, which Spark keeps in its checkpoint, so that a batch that is
done again holds the same rows. The log ends for a batch at its second mark: of a transaction that is decided behind it,
the commits are `open`.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kohort.spark.compat import AvailableNow, admits, read_limit_of, rows_limit
from kohort.spark.marks import Mark, Marks, followed, offsets_of
from kohort.spark.options import EARLIEST, LATEST, BadOption, Options, parse_options
from kohort.spark.request import Request
from kohort.spark.source import LogPartition, rows_of

if TYPE_CHECKING:
    import pyarrow as pa


class StreamPartition(LogPartition):
    """What one task reads of a micro-batch, and what is asked of it."""

    def __init__(self, place: int, stretches: list[Any], request: Request) -> None:
        super().__init__(place, stretches)
        self.request = request


class LogStreamReader(DataSourceStreamReader):
    """Marks on the driver, rows in the tasks."""

    def __init__(self, options: Mapping[str, str], columns: tuple[str, ...]) -> None:
        self._options = parse_options(options)
        self._columns = columns
        self._followed = followed(self._options.live, self._options.paths, self._options.topic)
        if self._options.most is not None and not admits():
            raise BadOption("maxOffsetsPerTrigger needs Spark 4.2: older ones do not let a Python source limit a batch")

    def initialOffset(self) -> dict[str, Mark]:  # noqa: N802  # Spark's name
        begin = self._options.starting_offsets
        if begin == EARLIEST:
            return {}
        return self._followed.last({}, None) if begin == LATEST else dict(json.loads(begin))

    def latestOffset(self) -> dict[str, Mark]:  # type: ignore[override]  # noqa: N802  # as it was before Spark 4.2
        return self._followed.last({}, None)

    def partitions(self, start: Marks, end: Marks) -> list[InputPartition]:
        request = request_between(self._options, self._columns, start, end)
        if request.table == "marks":
            if start == end:
                return []
            return [MarksPartition(start, end)]
        shares = self._followed.between(start, end, self._options.partitions)
        return [StreamPartition(place, stretches, request) for place, stretches in enumerate(shares)]

    def stop(self) -> None:
        self._followed.close()

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        if isinstance(partition, MarksPartition):
            yield partition.row()
        else:
            assert isinstance(partition, StreamPartition)
            yield from rows_of(partition, partition.request)


class AdmittingLogStreamReader(LogStreamReader, AvailableNow):  # type: ignore[misc]  # what it is, Spark decides
    """The same for a Spark that says where a batch begins and how much it may hold."""

    _target: dict[str, Mark] | None = None

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # Spark's name
        return read_limit_of(self._options.most)

    def latestOffset(self, start: Marks, limit: Any) -> dict[str, Mark]:  # type: ignore[override]  # noqa: N802
        most = rows_limit(limit)
        if self._target is None:
            return self._followed.last(start, most)
        reached = {partition: mark["offset"] for partition, mark in self._target.items()}
        found = self._followed.last(start, most)
        return {
            partition: mark if mark["offset"] < reached[partition] else self._target[partition]
            for partition, mark in found.items()
            if partition in reached
        }

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        self._target = self._followed.last({}, None)


class MarksPartition(InputPartition):
    """The marks of a micro-batch, as its only row."""

    def __init__(self, start: Marks, end: Marks) -> None:
        super().__init__(0)
        self.start, self.end = start, end

    def row(self) -> "pa.RecordBatch":
        import pyarrow as pa

        from kohort.spark.schema import arrow_schema_of

        told = {"start": json.dumps(self.start), "end": json.dumps(self.end)}
        return pa.RecordBatch.from_pylist([told], schema=arrow_schema_of("marks"))


def request_between(options: Options, columns: tuple[str, ...], start: Marks, end: Marks) -> Request:
    """What is asked of the log between two marks."""
    asked = Request(
        options.table,
        columns,
        fail_fast=options.fail_fast,
        starting=options.starting,
        ending=options.ending,
        rule=options.rule,
        into=options.into,
    )
    return dataclasses.replace(asked, since=offsets_of(start), until=offsets_of(end))


def stream_reader(options: Mapping[str, str], columns: tuple[str, ...]) -> LogStreamReader:
    """The reader for the Spark that runs."""
    return (AdmittingLogStreamReader if admits() else LogStreamReader)(options, columns)
