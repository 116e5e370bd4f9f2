"""The one list of tables, with the schema of each."""

from typing import TYPE_CHECKING

import pyarrow as pa

from kohort.errors import KohortError
from kohort.spark.base_schema import BASE
from kohort.spark.columns import Columns, arrow_schema, spark_schema
from kohort.spark.derived_schema import DERIVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

LOG_TABLES = ("records", "offset_commits", "group_generations", "members", "assignments", "quarantine")
"""What only a log can give."""

SOURCE_TABLES = (*LOG_TABLES, "folded", "written", "marks")
"""What the data source reads; the others are made from these.

`folded` is for a replay, which merges its rows. `written` tells of the files in which tasks have left all `LOG_TABLES`.
`marks` is of a stream only: one row a micro-batch, which says where it begins and ends.
"""

TABLES: dict[str, Columns] = BASE | DERIVED


def columns_of(table: str) -> Columns:
    if table not in TABLES:
        raise KohortError(f"no table {table!r}: there are {', '.join(TABLES)}")
    return TABLES[table]


def arrow_schema_of(table: str) -> pa.Schema:
    return arrow_schema(columns_of(table))


def schema_of(table: str) -> "StructType":
    """A table's schema as Spark has it, with a comment on every column."""
    return spark_schema(columns_of(table))


def as_table(rows: "DataFrame", table: str) -> "DataFrame":
    """The columns of a table out of `rows`: in its order, with its types and comments."""
    wanted = schema_of(table)
    return rows.select(
        *(rows[field.name].cast(field.dataType).alias(field.name, metadata=field.metadata) for field in wanted)
    )
