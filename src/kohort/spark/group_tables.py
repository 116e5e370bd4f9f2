"""`members` and `assignments` from `records`, where the members of every group record stand already.

The data source gives the same rows; this spares reading the log for each of them.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kohort.spark.schema import as_table
from kohort.spark.tables.frames import instant


def members_of(records: DataFrame) -> DataFrame:
    """The members of every record of a classic group."""
    members = _members(records).select("*", "member.*")
    is_leader = fn.col("member_id").eqNullSafe(fn.col("leader"))
    return as_table(members.withColumn("is_leader", is_leader), "members")


def assignments_of(records: DataFrame) -> DataFrame:
    """The partitions that every such record gives to its members."""
    owned = _members(records).select("*", "member.*").withColumn("owned", fn.explode("assignment"))
    topic_partition = {"topic": fn.col("owned.topic"), "topic_partition": fn.col("owned.partition")}
    return as_table(owned.withColumns(topic_partition), "assignments")


def _members(records: DataFrame) -> DataFrame:
    groups = records.where((fn.col("kind") == "group_metadata") & fn.col("members").isNotNull())
    return groups.select(
        "partition",
        "offset",
        _time("timestamp").alias("timestamp"),
        "group",
        "generation",
        "leader",
        fn.explode("members").alias("member"),
    )


def _time(name: str) -> Column:
    """A time of `records` as the other tables have it; -1 means that there is none."""
    return fn.when(fn.col(name) != -1, instant(fn.col(name)))
