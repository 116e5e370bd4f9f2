"""The data source `kohort`: logs of the offsets topic as tables, through Spark's Python data source API."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from kohort.spark.compat import plans_with_filters
from kohort.spark.options import BadOption, checked_columns, parse_options
from kohort.spark.request import Request

if TYPE_CHECKING:
    import pyarrow as pa

    from kohort.spark.inputs import Stretch


class KohortDataSource(DataSource):
    """`spark.read.format("kohort").option("path", ...).option("table", ...).load()`.

    The options are those of `kohort.spark.options`. Of a schema that is given, the columns that it names are read.
    """

    @classmethod
    def name(cls) -> str:
        return "kohort"

    def schema(self) -> StructType:
        from kohort.spark.schema import schema_of

        options = parse_options(self.options)
        whole = schema_of(options.table)
        return StructType([whole[name] for name in options.columns])

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(parse_options(self.options).table, schema)
        kind = FilteringLogReader if plans_with_filters() else LogReader
        return kind(dict(self.options), tuple(schema.fieldNames()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        from kohort.spark.stream import stream_reader

        check_schema(parse_options(self.options).table, schema)
        return stream_reader(dict(self.options), tuple(schema.fieldNames()))


def check_schema(table: str, schema: StructType) -> None:
    """Refuse a schema that names columns which the table does not have, or has with another type."""
    from kohort.spark.schema import schema_of

    whole = schema_of(table)
    for name in checked_columns(table, tuple(schema.fieldNames())):
        if schema[name].dataType != whole[name].dataType:
            wanted = whole[name].dataType.simpleString()
            raise BadOption(f"{table}.{name} is {wanted}, not {schema[name].dataType.simpleString()}")


class LogPartition(InputPartition):
    """The stretches of log that one task reads, and the task's place among all."""

    def __init__(self, place: int, stretches: list["Stretch"]) -> None:
        super().__init__(place)
        self.stretches = stretches


class LogReader(DataSourceReader):
    """Plans on the driver, reads in the tasks."""

    def __init__(self, options: Mapping[str, str], columns: tuple[str, ...]) -> None:
        self._options = parse_options(options)
        self._request = Request(
            self._options.table,
            columns,
            fail_fast=self._options.fail_fast,
            starting=self._options.starting,
            ending=self._options.ending,
            rule=self._options.rule,
            as_of=self._options.as_of,
            since=self._options.since,
            until=self._options.until,
            into=self._options.into,
        )
        if self._options.between is not None:
            from kohort.spark.marks import offsets_of

            start, end = self._options.between
            self._request = dataclasses.replace(self._request, since=offsets_of(start), until=offsets_of(end))

    def partitions(self) -> list[InputPartition]:
        from kohort.spark.inputs import share_out
        from kohort.spark.live import logs_of
        from kohort.spark.marks import followed

        asked = self._options
        if asked.table == "marks":
            raise BadOption("the table marks is of a stream only: readStream")
        if asked.between is not None:
            shares = followed(asked.live, asked.paths, asked.topic).between(*asked.between, asked.partitions)
            return [LogPartition(place, stretches) for place, stretches in enumerate(shares)]
        shares = share_out(logs_of(asked.live, asked.paths, asked.topic, asked.since), asked.partitions)
        return [LogPartition(place, stretches) for place, stretches in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        assert isinstance(partition, LogPartition)
        return rows_of(partition, self._request)


def rows_of(partition: LogPartition, request: Request) -> Iterator["pa.RecordBatch"]:
    """What a task reads."""
    from kohort.spark.live import leaving_clusters

    stretches = partition.stretches
    with leaving_clusters(stretches):
        if request.table == "folded":
            from kohort.spark.folding import fold, to_table

            yield from to_table(fold(stretches, request, partition.value)).to_batches()
        elif request.table == "written":
            from kohort.spark.writing import told, write

            yield from told(write(stretches, request, partition.value))
        else:
            from kohort.spark.reading import read

            yield from read(stretches, request)


class FilteringLogReader(LogReader):
    """The same, with filters on group, topic and time taken from Spark, which goes on to apply them itself."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802  # Spark's name
        from kohort.spark.filters import narrowed

        for filter_ in filters:
            self._request = dataclasses.replace(self._request, **narrowed(self._request, filter_))
            yield filter_
