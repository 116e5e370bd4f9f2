"""The tables that are made from other tables, all of them at once, for one run."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

from kohort.spark.tables.expiry import expiry
from kohort.spark.tables.lag import lag
from kohort.spark.tables.lag_status import lag_status
from kohort.spark.tables.offset_jumps import offset_jumps
from kohort.spark.tables.rebalances import rebalances
from kohort.spark.tables.topic_health import topic_health


@dataclass(frozen=True, slots=True)
class Derivation:
    """What the derived tables are made from.

    `tables` gives those that are there already. `walked` is the walk of all commits up to `at`, the time for which the
    tables speak.
    """

    tables: Callable[[str], DataFrame]
    walked: DataFrame
    at: datetime
    retention_minutes: int
    end_offsets: DataFrame | None = None
    topic_times: DataFrame | None = None

    def make(self, name: str) -> DataFrame:
        """One of `DERIVED`; what it is made from stands before it there."""
        return _MAKERS[name](self)

    def _rebalances(self) -> DataFrame:
        return rebalances(self.tables("group_generations"), self.tables("members"), self.tables("assignments"))

    def _lag(self) -> DataFrame:
        return lag(
            self.tables("current_offsets"),
            self.end_offsets,
            self.topic_times,
            commits=self.tables("offset_commits"),
            walked=self.walked,
            as_of=self.at,
        )

    def _lag_status(self) -> DataFrame:
        return lag_status(
            self.tables("offset_commits"),
            self.end_offsets,
            self.topic_times,
            as_of=self.at,
            every_commit=False,
            walked=self.walked,
        )

    def _expiry(self) -> DataFrame:
        return expiry(
            self.tables("current_offsets"),
            self.tables("current_groups"),
            self.tables("pending_offsets"),
            retention_minutes=self.retention_minutes,
            now=self.at,
        )

    def _topic_health(self) -> DataFrame:
        return topic_health(self.tables("offset_commits"), self.tables("group_generations"), walked=self.walked)

    def _offset_jumps(self) -> DataFrame:
        return offset_jumps(
            self.tables("offset_commits"),
            self.tables("group_generations"),
            self.tables("members"),
            self.tables("assignments"),
            end_offsets=self.end_offsets,
            topic_times=self.topic_times,
            walked=self.walked,
        )


_MAKERS: dict[str, Callable[[Derivation], DataFrame]] = {
    "rebalances": Derivation._rebalances,
    "lag": Derivation._lag,
    "lag_status": Derivation._lag_status,
    "expiry": Derivation._expiry,
    "topic_health": Derivation._topic_health,
    "offset_jumps": Derivation._offset_jumps,
}

DERIVED = tuple(_MAKERS)
