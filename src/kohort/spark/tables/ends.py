"""Where topic partitions ended at some time: from what is known of them, else from the commits themselves.

What is known are samples: the end at some instant (`end_offsets`), or when a record was produced (`topic_times`: the
end was behind it then). Between two samples the end is interpolated, after the last one it stands still. Before the
first one, and for topic partitions without any, the furthest commit of any group until then takes its place: the end
was there or behind, so the lag is at least that. Rows of all groups that commit for a topic partition are sorted by
time together with its samples, so that no row ever meets another one in a join.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

TOPIC_PARTITION = ("topic", "topic_partition")

END_OFFSETS, TOPIC_TIMES, FURTHEST_GROUP = "end_offsets", "topic_times", "furthest_group"


def samples_of(end_offsets: DataFrame | None, topic_times: DataFrame | None) -> DataFrame | None:
    """What is known of the ends of topic partitions, by time, each with what follows it."""
    parts = []
    if end_offsets is not None:
        parts.append(_sample(end_offsets, fn.col("end_offset"), fn.unix_millis("at"), END_OFFSETS))
    if topic_times is not None:
        after = fn.try_add("offset", fn.lit(1))
        parts.append(_sample(topic_times, after, fn.unix_millis("timestamp"), TOPIC_TIMES))
    if not parts:
        return None
    distinct = (
        reduce(DataFrame.unionByName, parts)
        .where((fn.col("end") >= 0) & fn.col("millis").isNotNull())
        .groupBy(*TOPIC_PARTITION, "millis")
        .agg(fn.max(fn.struct("end", "source")).alias("best"))
    )
    log = Window.partitionBy(*TOPIC_PARTITION).orderBy("millis")
    return distinct.select(
        *TOPIC_PARTITION,
        "millis",
        fn.struct(
            "millis",
            "best.end",
            "best.source",
            fn.lead("millis").over(log).alias("next_millis"),
            fn.lead("best.end").over(log).alias("next_end"),
        ).alias("sample"),
    )


def _sample(table: DataFrame, end: Column, millis: Column, source: str) -> DataFrame:
    return table.select(*TOPIC_PARTITION, end.alias("end"), millis.alias("millis"), fn.lit(source).alias("source"))


def with_ends(rows: DataFrame, samples: DataFrame | None, *, claims: DataFrame | None = None) -> DataFrame:
    """`rows` (topic, topic_partition, at, committed_offset, ...) with `end_offset` at that time, and its `source`.

    `claims` are further commits (topic, topic_partition, at, committed_offset) that show how long the log was at least.
    """
    both = rows.withColumn("is_row", fn.lit(True)).withColumn("millis", fn.unix_millis("at"))
    if claims is not None:
        claimed = claims.select(*TOPIC_PARTITION, fn.unix_millis("at").alias("millis"), "committed_offset")
        both = both.unionByName(claimed, allowMissingColumns=True)
    if samples is not None:
        both = both.unionByName(samples, allowMissingColumns=True)
    by_time = Window.partitionBy(*TOPIC_PARTITION).orderBy("millis")
    until = by_time.rangeBetween(Window.unboundedPreceding, 0)
    end = fn.coalesce(fn.max("committed_offset").over(until), fn.col("committed_offset"))
    source = fn.lit(FURTHEST_GROUP)
    if samples is not None:
        end = fn.coalesce(_end_at(fn.last("sample", ignorenulls=True).over(until), fn.col("millis")), end)
        source = fn.coalesce(fn.last("sample.source", ignorenulls=True).over(until), source)
    ended = both.withColumns({"end_offset": end, "source": source})
    return ended.where(fn.col("is_row")).drop("is_row", "millis", "sample")


def _end_at(sample: Column, millis: Column) -> Column:
    """The end at some time from the sample before it, on the way to the one after."""
    part = (millis - sample["millis"]) / (sample["next_millis"] - sample["millis"])
    grown = fn.floor((sample["next_end"] - sample["end"]) * part)
    return sample["end"] + fn.coalesce(grown, fn.lit(0))
