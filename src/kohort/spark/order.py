"""What a run of the pipeline is asked for, and whether that can be done; Spark is not needed to tell."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kohort.config import GroupConfig
from kohort.log.source import BadSource
from kohort.spark.choices import PARQUET, PERMISSIVE, POSITION
from kohort.spark.inputs import OFFSETS_TOPIC
from kohort.spark.live import LiveAddress, logs_of
from kohort.spark.manifest import NAME, read_manifest
from kohort.spark.options import live_address
from kohort.spark.publishing import is_begun
from kohort.spark.schema import TABLES
from kohort.spark.staging import BadOutput, is_being_replaced

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a run is asked for. Times are milliseconds since 1970."""

    source: str
    out: Path
    topic: str = OFFSETS_TOPIC
    as_of: int | None = None
    rule: str = POSITION
    mode: str = PERMISSIVE
    format: str = PARQUET
    retention_minutes: int = GroupConfig().offsets_retention_minutes
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it takes to get into a live cluster: the options of the data source that begin with `kafka.`."""

    @property
    def live(self) -> LiveAddress | None:
        """The cluster that is the source, if it is one."""
        return live_address({"path": self.source, **{name.lower(): value for name, value in self.kafka.items()}})

    def check(self) -> None:
        """Refuse a source that is no log, and a directory in which something else would be replaced."""
        logs = logs_of(self.live, [self.source], self.topic, {})
        if sum(log.partition < 0 for log in logs) > 1:
            raise BadSource(f"{self.source}: several logs whose places do not tell their partitions; give one of them")
        self._check_out()

    def _check_out(self) -> None:
        out = self.out
        if _ADDRESS.match(str(out)):
            raise BadOutput(f"{out}: give a directory that this machine and Spark's workers see")
        if out.exists() and not out.is_dir():
            raise BadOutput(f"{out}: is not a directory")
        if (out / NAME).exists():
            found = read_manifest(out).format
            if found != self.format:
                raise BadOutput(f"{out}: holds tables of format {found}: choose that, or another directory")
        elif not is_being_replaced(out) and not is_begun(out):
            for name in TABLES:
                if (out / name).exists():
                    raise BadOutput(f"{out / name}: is not from a run of `kohort pipeline` and stays as it is")
