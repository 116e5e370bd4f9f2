"""A session of our own making: found Java, UTC, and not a word of Spark's to the user."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

from kohort.spark.session import get_spark, local_memory
from kohort.spark.shipping import pack
from tests.golden_sets import GOLDEN
from tests.slow import slow

SCRIPT = """
import json, os, sys
from pyspark.errors import PySparkException
from kohort.spark.session import get_spark
spark = get_spark("local[1]")
rows = spark.read.format("kohort").load(sys.argv[1]).count()
try:
    spark.read.format("kohort").load(sys.argv[2]).count()
    refused = ""
except PySparkException as error:
    refused = str(error)
def fail(batches):
    print("hello from a worker", file=sys.stderr)
    raise ValueError("no")
try:
    spark.range(4).mapInArrow(fail, "id long").count()
except PySparkException:
    pass
print(json.dumps({"rows": rows, "refused": refused, "java": os.environ.get("JAVA_HOME")}))
"""


@slow
def test_spark_keeps_quiet_even_when_something_fails() -> None:
    golden = str(GOLDEN[0].path)
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")}
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, golden, "/nowhere"], capture_output=True, text=True, check=True, env=environment
    )
    found = json.loads(told.stdout)
    assert found["rows"] == 133
    assert "/nowhere: No such file or directory" in found["refused"]
    assert found["java"] is None
    assert told.stderr == ""


def test_a_session_that_is_there_is_taken_as_it_is(spark: SparkSession) -> None:
    assert get_spark("local[7]", settings={"spark.sql.session.timeZone": "Europe/Paris"}) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"


def test_what_java_says_is_told_if_spark_does_not_start() -> None:
    script = "from kohort.spark.session import get_spark; get_spark(settings={'spark.driver.memory': 'plenty'})"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert told.stderr.splitlines()[-1].startswith("kohort.spark.session.SparkDidNotStart: Spark did not start: ")
    assert "plenty" in told.stderr.splitlines()[-1]


def test_memory_follows_the_cores() -> None:
    assert local_memory("local[3]") == local_memory("local[3,2]") == "2048m"
    assert local_memory("local") == "1024m"
    assert int(local_memory("local[9999]")[:-1]) < 9999 * 512


def test_the_package_can_be_imported_from_what_is_sent(tmp_path: Path) -> None:
    pack(tmp_path / "kohort.zip")
    script = "import pyspark_kohort, kohort.spark.inputs as inputs; print(inputs.__file__)"
    path = f"{tmp_path / 'kohort.zip'}:{sysconfig.get_path('purelib')}"
    command = [sys.executable, "-S", "-c", script]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path})
    assert told.stdout == f"{tmp_path / 'kohort.zip'}/kohort/spark/inputs.py\n"
    assert "kohort/spark/log4j2.properties" in zipfile.ZipFile(tmp_path / "kohort.zip").namelist()
