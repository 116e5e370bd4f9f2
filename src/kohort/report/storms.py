"""Groups that rebalance again and again: when that was, and who came and went."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from kohort.report.groups import STORM, is_rebalance
from kohort.report.run import Run

PAUSE_S = 1_800
"""A group that was quiet for so long has got over it."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Storm:
    """Many rebalances of one group, with no long pause in between. `client` is whoever moved in most of them."""

    group: str
    count: int
    start: int
    end: int
    causes: dict[str, int]
    client: str | None
    joined: int
    left: int


def find_storms(run: Run) -> list[Storm]:
    """The largest storm of each of the groups that have the largest ones."""
    rows = run.table("rebalances").where(is_rebalance() & fn.col("completed_at").isNotNull())
    in_order = Window.partitionBy("group").orderBy("completed_at", "offset")
    rows = rows.withColumn("millis", fn.unix_millis("completed_at"))
    pause = fn.col("millis") - fn.lag("millis").over(in_order)
    rows = rows.withColumn("begins", fn.coalesce((pause > PAUSE_S * 1000).cast("int"), fn.lit(0)))
    rows = rows.withColumn("storm", fn.sum("begins").over(in_order))
    storms = rows.groupBy("group", "storm").agg(
        fn.count("*").alias("n"), fn.min("millis").alias("start"), fn.max("millis").alias("end")
    )
    largest = storms.groupBy("group").agg(fn.max_by(fn.struct("n", "storm", "start", "end"), "n").alias("s"))
    found = largest.where(fn.col("s.n") >= STORM).orderBy(fn.desc("s.n"), "group").limit(_NAMED).collect()
    if not found:
        return []
    names = [(row["group"], row["s"]["storm"]) for row in found]
    chosen = run.spark.createDataFrame(names, "`group` string, storm long")
    inside = rows.join(fn.broadcast(chosen), ["group", "storm"])
    causes: dict[str, dict[str, int]] = {}
    for row in inside.groupBy("group", "cause").agg(fn.count("*").alias("n")).orderBy(fn.desc("n"), "cause").collect():
        causes.setdefault(row["group"], {})[row["cause"]] = row["n"]
    moved = _movers(run, inside)
    return [
        Storm(
            row["group"],
            row["s"]["n"],
            row["s"]["start"],
            row["s"]["end"],
            causes[row["group"]],
            *moved.get(row["group"], (None, 0, 0)),
        )
        for row in found
    ]


def _movers(run: Run, rebalances: DataFrame) -> dict[str, tuple[str, int, int]]:
    """Of each group, the client that came and went most often, if that was in at least half of the rebalances."""
    moves = rebalances.select(
        "group", fn.explode(fn.concat(_moves("members_joined", 1), _moves("members_left", 0))).alias("move")
    ).select("group", "move.*")
    client = fn.max(fn.coalesce("instance_id", "client_id")).alias("client")
    names = run.table("members").groupBy("group", "member_id").agg(client)
    counted = (
        moves.join(names, ["group", "member_id"])
        .groupBy("group", "client")
        .agg(fn.sum("joined").alias("joined"), fn.count("*").alias("n"))
    )
    totals = rebalances.groupBy("group").agg(fn.count("*").alias("all"))
    most = fn.max_by(fn.struct("client", "joined", "n"), "n").alias("m")
    top = counted.groupBy("group").agg(most).join(totals, "group")
    return {
        row["group"]: (row["m"]["client"], row["m"]["joined"], row["m"]["n"] - row["m"]["joined"])
        for row in top.where(fn.col("m.n") * 2 >= fn.col("all")).collect()
    }


def _moves(members: str, joined: int) -> Column:
    return fn.transform(members, lambda member: fn.struct(member.alias("member_id"), fn.lit(joined).alias("joined")))
