"""Spark's own Kafka source reads from kohort, and its progress is seen as that of a consumer group."""

import subprocess
from pathlib import Path

import pytest
from bench import kafka
from tests.spark.live_broker import SETTINGS, TOPIC, committed, produce

from kohort.testing import Broker

VERSION = "4.0.0"
"""Of Spark and its Kafka source, which go together: the oldest that is supported, in an environment of its own."""

PYTHON = Path(__file__).parent.parent / f".venv-spark-{VERSION}/bin/python"

pytestmark = pytest.mark.skipif(
    not kafka.available() or not PYTHON.exists(), reason=f"needs Java, Maven and an environment with pyspark {VERSION}"
)

PATIENCE_S = 600

READ = """
import sys
from kohort.spark.listener import OffsetCommitListener
from kohort.spark.session import get_spark

address, topic, checkpoint, jars = sys.argv[1:]
spark = get_spark("local[2]", settings={"spark.jars": jars})
listener = OffsetCommitListener(address, "spark-reads")
spark.streams.addListener(listener)
rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
rows = rows.option("startingOffsets", "earliest").load()
query = rows.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
query.awaitTermination()
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
spark.streams.removeListener(listener)
listener.close()
spark.stop()
"""


def jars() -> list[Path]:
    """Spark's Kafka source and what it needs, from Maven."""
    home = kafka.CACHE / f"spark-kafka-{VERSION}"
    libs = home / "libs"
    if not any(libs.glob("spark-sql-kafka-*.jar")):
        home.mkdir(parents=True, exist_ok=True)
        (home / "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>lab</groupId><artifactId>lab</artifactId>"
            "<version>1</version><packaging>pom</packaging><dependencies><dependency>"
            "<groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId>"
            f"<version>{VERSION}</version></dependency></dependencies></project>"
        )
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime"]
        subprocess.run(copy, cwd=home, check=True)
    names = ("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients-", "commons-pool2-")
    return [path for path in sorted(libs.glob("*.jar")) if path.name.startswith(names)]


def test_kafkas_tools_see_how_far_spark_is(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", settings=SETTINGS) as broker:
        produce(broker.bootstrap_servers, 25)
        produce(broker.bootstrap_servers, 7, partition=1)
        given = [broker.bootstrap_servers, TOPIC, str(tmp_path / "checkpoint"), ",".join(map(str, jars()))]
        subprocess.run([PYTHON, "-c", READ, *given], check=True, timeout=PATIENCE_S)
        assert committed(broker.bootstrap_servers, "spark-reads") == {(TOPIC, 0): 25, (TOPIC, 1): 7}
        assert broker.groups()["spark-reads"].state == "Empty"
