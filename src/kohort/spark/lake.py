"""The tables of a run in Delta or Iceberg: replaced, added to, merged, and put back to what they were.

Each of these is one step of the format's own for one table, which its readers see whole or not at all. What holds for
all tables together is the business of `publishing`.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kohort.spark.choices import DELTA, ICEBERG
from kohort.spark.formats import CATALOG, iceberg_settings
from kohort.spark.publishing import versions_to_read

_SOURCE = "kohort_merged"
_VERSION = {DELTA: "versionAsOf", ICEBERG: "snapshot-id"}


class Lake:
    """The tables of one directory."""

    def __init__(self, spark: SparkSession, format_: str, out: Path) -> None:
        self._spark, self._format, self._out = spark, format_, out
        if format_ == ICEBERG:
            for setting, value in iceberg_settings(out).items():
                spark.conf.set(setting, value)

    def read(self, table: str) -> DataFrame:
        """A table as it is now, whatever a run that died has left in it."""
        if self._format == DELTA:
            return self._spark.read.format(DELTA).load(str(self._out / table))
        return self._spark.table(self._name(table))

    def replace(self, table: str, rows: DataFrame) -> None:
        if self._format == DELTA:
            rows.write.format(DELTA).mode("overwrite").option("overwriteSchema", "true").save(str(self._out / table))
        else:
            rows.writeTo(self._name(table)).using(ICEBERG).createOrReplace()

    def append(self, table: str, rows: DataFrame) -> None:
        if self._format == DELTA:
            rows.write.format(DELTA).mode("append").save(str(self._out / table))
        else:
            rows.writeTo(self._name(table)).append()

    def merge(self, table: str, rows: DataFrame, keys: Sequence[str]) -> None:
        """Let the table hold these rows: those whose key is new come, those that differ change, all others go."""
        others = [name for name in rows.columns if name not in keys]
        self._merge(
            table,
            rows,
            keys,
            f"WHEN MATCHED AND NOT ({_same(others)}) THEN UPDATE SET *",
            "WHEN NOT MATCHED THEN INSERT *",
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
        )

    def update(self, table: str, rows: DataFrame, keys: Sequence[str]) -> None:
        """Change the rows that are there under the keys of these."""
        self._merge(table, rows, keys, "WHEN MATCHED THEN UPDATE SET *")

    def version(self, table: str) -> int | None:
        """What the format calls the table as it is now; None if it is not there."""
        if self._format == DELTA:
            if not (self._out / table / "_delta_log").exists():
                return None
            rows = self._spark.sql(f"DESCRIBE HISTORY {self._name(table)} LIMIT 1").select("version").collect()
        else:
            if not self._spark.catalog.tableExists(self._name(table)):
                return None
            rows = self._spark.sql(f"SELECT snapshot_id FROM {self._name(table)}.refs WHERE name = 'main'").collect()
        return int(rows[0][0]) if rows else None

    def put_back(self, table: str, version: int) -> None:
        """Make a table again what it was at a version."""
        if self._format == DELTA:
            self._spark.sql(f"RESTORE TABLE {self._name(table)} TO VERSION AS OF {version}")
        else:
            name = f"table => '{table}', snapshot_id => {version}"
            self._spark.sql(f"CALL {CATALOG}.system.set_current_snapshot({name})")

    def _merge(self, table: str, rows: DataFrame, keys: Sequence[str], *clauses: str) -> None:
        rows.createOrReplaceTempView(_SOURCE)
        try:
            merge = f"MERGE INTO {self._name(table)} t USING {_SOURCE} s ON {_same(keys)}"
            self._spark.sql(" ".join([merge, *clauses]))
        finally:
            self._spark.catalog.dropTempView(_SOURCE)

    def _name(self, table: str) -> str:
        return f"delta.`{self._out.absolute() / table}`" if self._format == DELTA else f"{CATALOG}.{table}"


def _same(columns: Sequence[str]) -> str:
    return " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in columns)


def read_table(spark: SparkSession, format_: str, out: Path, name: str) -> DataFrame:
    """A table that a run has left; while another is at work, or has died over it, as it was before."""
    reader = spark.read.format(format_)
    version = versions_to_read(out).get(name)
    if version is not None:
        reader = reader.option(_VERSION[format_], version)
    return reader.load(str(out / name))
