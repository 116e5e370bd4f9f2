"""What the log tells: tables that are made from tables, each by a function from DataFrames to a DataFrame."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from kohort.spark.tables.lag import lag_history as lags_in
from kohort.spark.tables.rebalances import rebalances as rebalances_in

spark = SparkSession.active()


@dp.materialized_view(comment="What each rebalance changed, and why it was")
def rebalances() -> DataFrame:
    return rebalances_in(
        spark.read.table("group_generations"), spark.read.table("members"), spark.read.table("assignments")
    )


@dp.materialized_view(comment="How far behind each group was at every commit, at least")
def lag_history() -> DataFrame:
    return lags_in(spark.read.table("offset_commits"))
