"""What a column of a table is: a name, an Arrow type and a comment; and the same as Spark has it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


class Column(NamedTuple):
    """A column of a table. Where every row of a log has a value, Spark need not look for NULLs: it reads faster."""

    name: str
    type: pa.DataType
    comment: str
    nullable: bool = True


Columns = tuple[Column, ...]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type, column.nullable) for column in columns])


def spark_schema(columns: Iterable[Column]) -> "StructType":
    """The columns as Spark has them, with their comments."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(column.name, spark_type(column.type), column.nullable, {"comment": column.comment})
            for column in columns
        ]
    )


def spark_type(type_: pa.DataType) -> "DataType":
    """Spark's type for one of Arrow's that our tables use."""
    from pyspark.sql import types

    plain: dict[pa.DataType, DataType] = {
        pa.bool_(): types.BooleanType(),
        pa.int16(): types.ShortType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.binary(): types.BinaryType(),
        pa.timestamp("us", "UTC"): types.TimestampType(),
        pa.date32(): types.DateType(),
    }
    if type_ in plain:
        return plain[type_]
    if pa.types.is_list(type_):
        return types.ArrayType(spark_type(type_.value_type))
    if pa.types.is_struct(type_):
        return types.StructType([types.StructField(field.name, spark_type(field.type)) for field in type_])
    raise ValueError(f"no table of ours has a column of type {type_}")
