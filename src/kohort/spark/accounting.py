"""Every record is accounted for: what was read is what stands in the tables, or in quarantine."""

from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.errors import KohortError


class AccountsDiffer(KohortError):
    """Records that were read are in no table, or the other way round."""


@dataclass(frozen=True, slots=True)
class Accounting:
    """The records of a log, counted by the replay, which goes through it on its own, and in the tables."""

    read: int
    damaged: int
    records: int
    quarantined: int
    offset_commits: int
    offset_commits_in_records: int
    group_generations: int
    group_generations_in_records: int

    def check(self) -> None:
        """Refuse a run whose tables do not hold what was read."""
        for one, what, other, where in (
            (self.read, "records", self.records, "records"),
            (self.damaged, "damaged records", self.quarantined, "quarantine"),
            (self.offset_commits_in_records, "offset commits", self.offset_commits, "offset_commits"),
            (self.group_generations_in_records, "group records", self.group_generations, "group_generations"),
        ):
            if one != other:
                raise AccountsDiffer(f"{one} {what} were read, {other} are in {where}: did the log change meanwhile?")

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def kinds_in(records: DataFrame) -> tuple[int, int]:
    """How many rows of `records` are offset commits and group records that can be read."""
    readable = fn.col("reason").isNull()
    counted = records.select(
        fn.count_if((fn.col("kind") == "offset_commit") & readable).alias("commits"),
        fn.count_if((fn.col("kind") == "group_metadata") & readable).alias("groups"),
    ).collect()
    return int(counted[0]["commits"]), int(counted[0]["groups"])
