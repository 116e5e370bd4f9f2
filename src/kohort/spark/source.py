"""The data source `kohort`: logs of the offsets topic as tables, through Spark's Python data source API."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
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
        )

    def partitions(self) -> list[InputPartition]:
        from kohort.spark.inputs import find_logs, newer, share_out

        logs = newer(find_logs(self._options.paths, self._options.topic), self._options.since)
        shares = share_out(logs, self._options.partitions)
        return [LogPartition(place, stretches) for place, stretches in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        assert isinstance(partition, LogPartition)
        if self._request.table == "folded":
            from kohort.spark.folding import fold, to_table

            return iter(to_table(fold(partition.stretches, self._request, partition.value)).to_batches())
        from kohort.spark.reading import read

        return read(partition.stretches, self._request)


class FilteringLogReader(LogReader):
    """The same, with filters on group, topic and time taken from Spark, which goes on to apply them itself."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802  # Spark's name
        from kohort.spark.filters import narrowed

        for filter_ in filters:
            self._request = dataclasses.replace(self._request, **narrowed(self._request, filter_))
            yield filter_
