"""Delta and Iceberg for real: the same tables, with the same comments, from the packages that the documents name.

The packages come from Maven Central and go with one version of Spark, so `make test-spark` alone runs this.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from kohort.spark.choices import DELTA, ICEBERG
from kohort.spark.formats import TRIED, TRIED_SPARK
from kohort.spark.manifest import read_manifest
from kohort.spark.pipeline import TABLES
from tests.golden_sets import ROOT
from tests.slow import slow
from tests.spark.runs import rows_in, run_on

SOURCE = ROOT / "kafka-3.9.1"
KOHORT = Path(sys.executable).parent / "kohort"

pytestmark = pytest.mark.skipif(
    not os.environ.get("KOHORT_TEST_FORMATS") or pyspark.__version__ != TRIED_SPARK,
    reason=f"only with pyspark {TRIED_SPARK} and packages from Maven: make test-spark",
)

_READ_BACK = """
import sys
from pathlib import Path
from kohort.spark.formats import TRIED, settings_of
from kohort.spark.lake import read_table
from kohort.spark.pipeline import TABLES
from kohort.spark.schema import schema_of
from kohort.spark.session import get_spark

format_, made, copied = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
packages = {"spark.jars.packages": TRIED[format_], "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
spark = get_spark("local[2]", settings={**settings_of(format_, made), **packages})
for table in TABLES:
    rows = read_table(spark, format_, made, table)
    comments = {field.name: field.metadata.get("comment") for field in rows.schema}
    assert comments == {field.name: field.metadata["comment"] for field in schema_of(table)}, (table, comments)
    rows.coalesce(1).write.parquet(str(copied / table))
spark.stop()
"""


@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_a_format_holds_the_tables_of_the_last_run(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    """The first run is as of a time before everything; the second replaces it."""
    made, copied, plain = tmp_path / "made", tmp_path / "copied", tmp_path / "plain"
    for moment in (["--as-of", "2001-01-01"], []):
        command = [KOHORT, "pipeline", SOURCE, "--out", made, "--format", format_, "--master", "local[2]"]
        subprocess.run([*command, *moment, "--conf", f"spark.jars.packages={TRIED[format_]}"], check=True)
    assert read_manifest(made).format == format_
    subprocess.run([sys.executable, "-c", _READ_BACK, format_, made, copied], check=True)
    run_on(spark, SOURCE, plain)
    for table in TABLES:
        found, expected = (sorted(map(str, rows_in(place, table))) for place in (copied, plain))
        assert found == expected, table


@slow
@pytest.mark.parametrize("format_", [DELTA, ICEBERG])
def test_runs_that_go_on_from_each_other_make_what_one_run_makes(tmp_path: Path, format_: str) -> None:
    """Also when some of them die between two tables: nobody sees that, and the next one makes it good."""
    subprocess.run([sys.executable, "-m", "tests.spark.incremental_story", format_, tmp_path], check=True)
