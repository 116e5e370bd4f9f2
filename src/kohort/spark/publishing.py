"""How a run's tables in Delta or Iceberg change together, though each changes in a step of its own.

Before the first of them changes, a note says at which version each was. For as long as it stands, tables are read at
those versions: nobody who reads them through this package sees some new and some old. It loses its meaning when
`kohort.json` is replaced, which is the last step of a run. A run that dies before that leaves it, and the next run puts
the tables back, or replaces them all.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kohort.errors import KohortError
from kohort.spark.manifest import read_manifest
from kohort.spark.schema import TABLES

if TYPE_CHECKING:
    from kohort.spark.lake import Lake

_NOTE = ".publishing.json"


def versions_to_read(out: Path) -> Mapping[str, int]:
    """The versions of tables that are not to be read as they are now."""
    try:
        told = json.loads((out / _NOTE).read_text(encoding="utf-8"))
        return dict(told["versions"]) if told["run"] == read_manifest(out).started_at else {}
    except (FileNotFoundError, KohortError):
        return {}


def is_begun(out: Path) -> bool:
    """Whether a run is at the tables, or has died over them."""
    return (out / _NOTE).exists()


def begin(lake: "Lake", out: Path) -> None:
    """Note what the tables of the last run are; what a run that died has noted still holds."""
    if versions_to_read(out):
        return
    try:
        run: str | None = read_manifest(out).started_at
    except KohortError:
        run = None  # nobody reads tables of which no run says that they are there
    found = {} if run is None else {name: lake.version(name) for name in TABLES}
    note = {"run": run, "versions": {name: version for name, version in found.items() if version is not None}}
    partial = out / f"{_NOTE}.new"
    partial.write_text(json.dumps(note), encoding="utf-8")
    os.replace(partial, out / _NOTE)


def end(out: Path) -> None:
    """Forget the note; the run is the last one now."""
    (out / _NOTE).unlink(missing_ok=True)


def put_back(lake: "Lake", out: Path) -> None:
    """Undo what a run that died has done to the tables."""
    for name, version in versions_to_read(out).items():
        if lake.version(name) != version:
            lake.put_back(name, version)
