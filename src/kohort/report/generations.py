"""Of each group that is told in detail: its rebalances, who was a member when, and who owned which partition when."""

from collections import defaultdict
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.report.limits import DETAILED, MEMBERS, OWNERS, REBALANCES
from kohort.report.rows import collected, last_of
from kohort.report.run import Run
from kohort.report.text import Strings

Rows = dict[int, list[list[Any]]]


def rebalances_of(run: Run, numbered: DataFrame, strings: Strings) -> Rows:
    """The last rebalances: when, generation, cause, told, came, went, partitions, moved, assigned, revoked, longest."""
    rows = run.table("rebalances").join(fn.broadcast(detailed(numbered)), "group")
    rows = last_of(rows, "g", [fn.desc("completed_at"), fn.desc("offset")], REBALANCES).orderBy(
        "completed_at", "offset"
    )
    told = rows.select(
        "g", "completed_at", "to_generation", "cause", fn.substring("cause_detail", 1, 300).alias("cause_detail"),
        "joined_count", "left_count", "partitions_total", "partitions_moved", "partitions_assigned",
        "partitions_revoked", "longest_seconds",
    )  # fmt: skip
    return _by_group(collected(told, strings, ("cause", "cause_detail")))


def members_of(run: Run, generations: DataFrame, strings: Strings) -> Rows:
    """From when until when each member was there: client, host, member id, whether static, from, until."""
    rows = run.table("members").join(generations, ["partition", "offset", "group"])
    who = fn.coalesce("instance_id", "member_id")
    told = fn.max_by(fn.struct("client_id", "client_host", "member_id", "instance_id"), "number").alias("told")
    spans = _spans(rows.withColumn("who", who), ["g", "who"], told)
    spans = last_of(spans, "g", [fn.desc("end"), fn.desc("start"), fn.col("who")], 2 * MEMBERS).orderBy("start", "who")
    flat = spans.select(
        "g", fn.col("told.client_id").alias("client"), fn.col("told.client_host").alias("host"),
        fn.col("told.member_id").alias("member"), fn.col("told.instance_id").alias("instance"), "start", "end",
    )  # fmt: skip
    return _by_group(collected(flat, strings, ("client", "host", "member", "instance")))


def owners_of(run: Run, generations: DataFrame, strings: Strings) -> Rows:
    """From when until when each partition had the same owner: topic, partition, client, from, until."""
    clients = run.table("members").select(
        "partition", "offset", "group", "member_id", fn.coalesce("instance_id", "client_id").alias("client")
    )
    rows = run.table("assignments").join(generations, ["partition", "offset", "group"])
    rows = rows.join(clients, ["partition", "offset", "group", "member_id"], "left")
    spans = _spans(rows, ["g", "topic", "topic_partition", "client"], fn.lit(0).alias("told"))
    spans = last_of(spans, "g", [fn.desc("end"), fn.col("topic"), fn.col("topic_partition")], OWNERS)
    flat = spans.orderBy("topic", "topic_partition", "start")
    flat = flat.select("g", "topic", "topic_partition", "client", "start", "end")
    return _by_group(collected(flat, strings, ("topic", "client")))


def last_generations(run: Run, numbered: DataFrame) -> DataFrame:
    """The last records of the groups that are told in detail, numbered, each with the time until which it held."""
    rows = run.table("group_generations").join(fn.broadcast(detailed(numbered)), "group")
    in_order = Window.partitionBy("g").orderBy("partition", "offset")
    rows = rows.withColumn("number", fn.row_number().over(in_order)).withColumn(
        "until", fn.coalesce(fn.lead("timestamp").over(in_order), fn.lit(run.at))
    )
    kept = last_of(rows, "g", [fn.desc("number")], REBALANCES)
    return kept.select("g", "partition", "offset", "group", "number", "until").persist()


def detailed(numbered: DataFrame) -> DataFrame:
    return numbered.where(fn.col("g") < DETAILED)


def _spans(rows: DataFrame, by: list[str], told: Column) -> DataFrame:
    """Rows of generations that follow each other, together."""
    in_order = Window.partitionBy(*by).orderBy("number")
    island = fn.col("number") - fn.row_number().over(in_order)
    together = rows.withColumn("island", island).groupBy(*by, "island")
    return together.agg(told, fn.min("timestamp").alias("start"), fn.max("until").alias("end"))


def _by_group(rows: list[list[Any]]) -> Rows:
    found: Rows = defaultdict(list)
    for g, *row in rows:
        found[g].append(row)
    return dict(found)
