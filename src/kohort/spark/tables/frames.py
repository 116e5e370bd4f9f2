"""Small things that several tables need."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

COMMIT_KEY = ("partition", "group", "topic", "topic_partition")
"""What a commit is for. The partition of the offsets topic belongs to it: places in different ones do not compare."""

_MILLIS = 1000.0
_FIRST_MILLI, _LAST_MILLI = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""
_LONGEST = (1 << 63) - 1


def visible(commits: DataFrame) -> DataFrame:
    """The records of `offset_commits` that count, tombstones among them: outside of transactions, or committed."""
    return commits.where(counted())


def counted() -> Column:
    """Whether such a record counts."""
    return fn.col("fate").isin("plain", "committed")


def commit_time() -> Column:
    """When a commit was made; the time of its record where its own cannot be shown."""
    return fn.coalesce(fn.col("commit_timestamp"), fn.col("timestamp"))


def seconds_between(start: Column | str, end: Column | str) -> Column:
    """Seconds from one instant to another; NULL if either is."""
    return (fn.unix_millis(_column(end)) - fn.unix_millis(_column(start))) / fn.lit(_MILLIS)


def step(start: Column | str, end: Column | str) -> Column:
    """How far it is from one offset to another. A log may hold any number, so what is too far stops at the longest."""
    start, end = _column(start), _column(end)
    furthest = fn.when(end > start, fn.lit(_LONGEST)).otherwise(fn.lit(-_LONGEST))
    return fn.when(start.isNotNull() & end.isNotNull(), fn.coalesce(fn.try_subtract(end, start), furthest))


def messages_behind(committed: str, end: Column | str = "end_offset") -> Column:
    """The lag of a committed offset; what is below zero counts as the beginning."""
    zero = fn.lit(0)
    return fn.greatest(fn.greatest(end, zero) - fn.greatest(committed, zero), zero)


def instant(millis: Column) -> Column:
    """Milliseconds since 1970 as a time; NULL outside of the years that everybody can hold."""
    return fn.when(millis.between(_FIRST_MILLI, _LAST_MILLI), fn.timestamp_millis(millis))


def _column(name: Column | str) -> Column:
    return fn.col(name) if isinstance(name, str) else name
