"""What stands in the log: each table is read by the data source `kohort`, and comes with comments on its columns."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


def read(table: str) -> DataFrame:
    source = spark.conf.get("spark.kohort.source")
    return spark.read.format("kohort").option("table", table).load(source)


@dp.materialized_view(comment="Every offset commit, with the fate of those in transactions")
def offset_commits() -> DataFrame:
    return read("offset_commits")


@dp.materialized_view(comment="Every record of a group")
def group_generations() -> DataFrame:
    return read("group_generations")


@dp.materialized_view(comment="The members in those records")
def members() -> DataFrame:
    return read("members")


@dp.materialized_view(comment="The partitions that those records give to members")
def assignments() -> DataFrame:
    return read("assignments")


@dp.materialized_view(comment="What cannot be read, and why")
def quarantine() -> DataFrame:
    return read("quarantine")
