"""`kohort.json`: what a run leaves beside its tables when all of them are there; without it they are not a run's."""

import json
import os
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from kohort.errors import KohortError
from kohort.spark.choices import FORMATS

NAME = "kohort.json"
VERSION = 1


class BadRun(KohortError):
    """A directory that holds no finished run, or none that is understood."""


@dataclass(frozen=True, slots=True)
class TableMade:
    """A table of a run. Several are made in one pass: the seconds of each are its share of that."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a run was asked for, when it was, and what it made. Times are ISO 8601, UTC."""

    source: str
    topic: str
    format: str
    rule: str
    mode: str
    retention_minutes: int
    started_at: str
    seconds: float
    as_of: str | None
    at: str
    """The time for which the tables speak: as of when, or else when something was last heard of the log."""
    ends: str
    """Where the ends of topics are from: data_segments, live_cluster, or furthest_group, the proxy."""
    accounting: dict[str, int]
    versions: dict[str, str]
    tables: dict[str, TableMade]
    version: int = field(default=VERSION)

    @property
    def at_millis(self) -> int:
        return round(datetime.fromisoformat(self.at).timestamp() * 1000)

    def write(self, out: Path) -> None:
        """Replace what an earlier run has left, in one step."""
        partial = out / f".{NAME}.new"
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        os.replace(partial, out / NAME)


def read_manifest(out: Path) -> Manifest:
    """What the last finished run in a directory has left."""
    path = out / NAME
    try:
        told: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadRun(f"{out}: no finished run of `kohort pipeline` is there ({NAME} is missing)") from None
    except (ValueError, RecursionError, OSError) as error:
        raise BadRun(f"{path}: cannot be read ({error})") from None
    if not isinstance(told, dict) or told.get("version") != VERSION:
        raise BadRun(f"{path}: not of version {VERSION}, which is understood here")
    try:
        tables = {name: TableMade(**made) for name, made in told.pop("tables").items()}
        manifest = Manifest(tables=tables, **told)
        datetime.fromisoformat(manifest.at)
        if manifest.format not in FORMATS:
            raise ValueError(f"format {manifest.format!r}")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadRun(f"{path}: not what a run writes ({error})") from None
    return manifest
