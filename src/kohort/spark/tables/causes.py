"""Why a group's record is there: the rules of `rebalances` in their order, each with the sentence that tells it."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn


def cause_and_detail(records: DataFrame) -> DataFrame:
    """`records` with `cause` and `cause_detail`, by the first rule that holds."""
    rules = _rules()
    skipped = fn.col("generations_skipped")
    told = fn.concat(
        _first(rules, 2),
        fn.when(
            skipped > 0, fn.concat(fn.lit("; "), _count(skipped, "generation"), fn.lit(" before it left no record"))
        ).otherwise(fn.lit("")),
    )
    return records.withColumn("cause", _first(rules, 1)).withColumn("cause_detail", told)


def _rules() -> list[tuple[Column, Column, Column]]:
    """Condition, cause, sentence."""
    joined, left, kept = fn.col("joined_count"), fn.col("left_count"), fn.col("kept_count")
    replaced, generation = fn.col("replaced_count"), fn.col("generation")
    before = fn.col("previous")
    nothing_before = before.isNull()
    only_created = fn.coalesce((before["generation"] == 0) & (before["member_count"] == 0), fn.lit(False))
    same_generation = fn.coalesce(before["generation"] == generation, fn.lit(False))
    nobody = fn.col("member_count") == 0
    same_clients = fn.col("joined_clients").eqNullSafe(fn.col("left_clients"))
    assigned, revoked = fn.col("partitions_assigned"), fn.col("partitions_revoked")
    last = fn.when(left == 1, fn.lit("member")).otherwise(fn.concat(left.cast("string"), fn.lit(" members")))
    came, went, stayed = _count(joined, "member", " joined"), _count(left, "member", " left"), _stayed(kept)
    sentences: list[tuple[Column, str, Column]] = [
        (
            fn.col("tombstone") & (before["member_count"] > 0),
            "group_converted",
            fn.lit("the group goes on, with its members, as one of a newer kind"),
        ),
        (fn.col("tombstone"), "group_removed", fn.lit("the group was deleted, or was empty and had no offsets left")),
        (
            nothing_before & nobody & (generation == 0),
            "group_created",
            fn.lit("the group is new: somebody asks to join, nobody has yet"),
        ),
        (
            ~nobody & (only_created | (nothing_before & (generation <= 1))),
            "first_generation",
            _said("the first generation: ", came),
        ),
        (nothing_before, "first_seen", _said("generation ", generation, " is the first that the log still has")),
        (
            same_generation & (joined + left + replaced == 0),
            "rewritten",
            fn.lit("the record was written again, and nothing in it is new"),
        ),
        (
            nobody & (left == 0),
            "group_emptied",
            fn.lit("members came and went before a generation was complete"),
        ),
        (nobody, "group_emptied", _said("the last ", last, " left or expired")),
        (
            (joined + left == 0) & (replaced > 0),
            "static_member_replaced",
            _said(_count(replaced, "static member"), " came back under a new member id; ", stayed),
        ),
        (
            (joined > 0) & (left > 0) & same_clients,
            "members_restarted",
            _said(
                _count(joined, "member"), " came back under a new member id, from the same client and host; ", stayed
            ),
        ),
        ((joined > 0) & (left > 0), "members_changed", _said(came, ", ", went, ", ", stayed)),
        (joined > 0, "member_joined", _said(came, ", ", stayed)),
        (left > 0, "member_left", _said(went, " or expired, ", stayed)),
        (
            fn.col("resubscribed_count") > 0,
            "subscription_changed",
            _said(_count(fn.col("resubscribed_count"), "member"), " subscribed to other topics"),
        ),
        (
            fn.col("protocol_changed"),
            "protocol_changed",
            _said("the assignor is now ", fn.coalesce("protocol", fn.lit("none")), ", it was ", before["protocol"]),
        ),
        (
            (fn.col("handed_over") > 0) & (assigned + revoked == 0),
            "cooperative_handover",
            _said(
                _count(fn.col("handed_over"), "partition"), " that the generation before gave up have an owner again"
            ),
        ),
        (
            fn.coalesce(assigned + revoked > 0, fn.lit(False)),
            "partitions_changed",
            _said(
                "the same members, but ",
                _count(assigned, "partition", " came"),
                " and ",
                _count(revoked, "partition", " went"),
                ": a topic was created, grew or was deleted, or the assignor takes several steps",
            ),
        ),
    ]
    unknown = fn.lit("unknown: the same members with the same partitions; one of them asked to join again")
    rules = [(condition, fn.lit(cause), sentence) for condition, cause, sentence in sentences]
    return [*rules, (fn.lit(True), fn.lit("same_members"), unknown)]


def _first(rules: list[tuple[Column, Column, Column]], position: int) -> Column:
    """What the first rule that holds has at a position."""
    return reduce(
        lambda rest, rule: fn.when(rule[0], rule[position]).otherwise(rest),
        reversed(rules),
        fn.lit(None).cast("string"),
    )


def _count(number: Column, noun: str, verb: str = "") -> Column:
    return fn.concat(number.cast("string"), fn.when(number == 1, fn.lit(f" {noun}{verb}")).otherwise(f" {noun}s{verb}"))


def _stayed(kept: Column) -> Column:
    return fn.when(kept == 0, fn.lit("nobody stayed")).otherwise(fn.concat(kept.cast("string"), fn.lit(" stayed")))


def _said(*parts: Column | str) -> Column:
    return fn.concat(*(fn.lit(part) if isinstance(part, str) else part.cast("string") for part in parts))
