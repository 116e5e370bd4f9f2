"""Writes `docs/pipeline.md`: what `kohort pipeline` and `kohort restore` do and take."""

from docs.live import sections
from docs.options import options
from docs.tables import summary
from kohort.cli.pipeline import pipeline
from kohort.cli.restore import restore
from kohort.spark.choices import DELTA, ICEBERG
from kohort.spark.formats import TRIED, TRIED_SPARK

INTRO = """# The offsets topic as tables

<!-- written by `python -m docs` from the commands' options -->

```
kohort pipeline SOURCE --out DIR
```

reads a log of `__consumer_offsets` (a segment file, a partition directory or a Kafka log directory, of a broker that
runs or is dead, or `kafka://HOST:PORT` of a live cluster) and leaves fifteen tables in DIR, each a directory of Parquet
files with a comment on every column. Spark does the work: on all cores of this machine, or wherever `--master` says.
Java 17 or newer is found by itself.

- **A run replaces all tables, or none.** It writes beside the old ones and renames at the end; `kohort.json`, which
  says what was made from what, is replaced last. A run that fails or is interrupted leaves everything as it was.
  Two runs do not write to one directory at the same time.
- **Every record is accounted for.** The replay goes through the log on its own and counts; the rows of `records`
  and what `quarantine` tells of must come to the same number, and `offset_commits` and `group_generations` must
  have a row for each such record. A difference ends the run with exit code 1.
- **All tables speak of one time**: `--as-of`, or else when something was last heard of the log. As of a time, each
  partition of the offsets topic is what stands before its first batch that is later. The log may grow meanwhile: no
  table goes beyond what the replay saw.
- **Lag** needs to know where topics end. A live cluster is asked. If SOURCE is a log directory with data topics beside
  the offsets topic, their segments tell, and their time indexes tell when records came. Otherwise the furthest commit
  of any group stands in, and lag is a lower bound. Each row says which it was (`source`).
- `lag_status` has a row for each commit at which a status changed, not for those at which it stayed as it was.
- Damage goes to `quarantine`; with `--mode failfast` it ends the run.

Exit codes: 0 done, 1 the work failed (one line says why), 2 wrong usage.
"""

FORMATS = f"""## Delta and Iceberg

`--format delta` and `--format iceberg` write the same tables in those formats, each replaced in one step that its
readers do not notice. Spark needs their package, in the version that goes with it. `make test-spark` tries these with
pyspark {TRIED_SPARK}:

```
kohort pipeline SOURCE --out DIR --format delta \\
  --conf spark.jars.packages={TRIED[DELTA]}
kohort pipeline SOURCE --out DIR --format iceberg \\
  --conf spark.jars.packages={TRIED[ICEBERG]}
```

The settings that the formats need besides are made by the command. Iceberg's tables are those of a Hadoop catalog
whose warehouse is DIR; `spark.read.format("iceberg").load("DIR/offset_commits")` reads one.

**Bit by bit.** `--incremental` reads what has come to the log since the last such run, and merges it into the tables.
New rows of `records`, `offset_commits`, `group_generations`, `members`, `assignments` and `quarantine` are appended; no
file that is there is written again, except that a commit whose transaction was open and has ended gets its fate by
MERGE. `current_groups`, `current_offsets` and `pending_offsets` are merged by key: what is new comes, what differs
changes, what is gone is deleted. The derived tables need the whole history; they are made anew from the tables and
replaced.

The first such run, and one that is asked for something else than the last, makes everything. The tables are then those
that one run over the whole log would make, except that rows stay which a cleaner has since taken from the log. The
state that a run goes on from is in `DIR/.incremental`.

Neither format changes several tables in one step. So before the first is changed, `DIR/.publishing.json` says at which
version each was, and `kohort report`, `kohort restore` and `kohort.spark.lake.read_table` read those until all tables
are there. Others who read while a run is at work may see some tables of this run and some of the one before. A run that
dies in the middle is undone by the next, which needs those versions: do not vacuum or expire them before it is done.
"""

RESTORE = """## Restoring offsets

```
kohort restore DIR --as-of 2026-11-16T03:12 [--group G]… [--out PLAN.csv] [--bootstrap HOST:PORT [--clamp] [--apply]]
```

tells which offsets groups had at a time, from the tables of a run. The plan is CSV as Kafka's own tool reads it,
without a heading: `topic,partition,offset`, and `group,topic,partition,offset` if there are several groups.

```
kafka-consumer-groups --bootstrap-server HOST:PORT --reset-offsets --group G --from-file PLAN.csv --execute
kafka-consumer-groups --bootstrap-server HOST:PORT --reset-offsets --all-groups --from-file PLAN.csv --execute
```

Names of groups stand in it as they are, quoted where CSV asks for it, for the tool must find them again. Those that
a spreadsheet would take for formulas are warned of. A name with a line break cannot stand in such a file: it is
left out, and the exit code is 1; `--apply` can set its offsets.

With `--bootstrap` the plan is compared with the offsets that the cluster has now and with the start and end of each
log; `--clamp` takes the nearest offset that is still there. `--apply` shows the difference, asks (`--yes` does
not), sets the offsets with the text that consumers had left with them, and reads them back. Leader epochs are not
restored: they belong to the cluster that gave them. Groups with members are refused, and so does Kafka. Offsets
that a group has and the plan does not name stay as they are.

A compacted log remembers less: what a later commit of the same group and partition has replaced may be gone.
"""


def page() -> str:
    """The whole of `docs/pipeline.md`."""
    parts = [INTRO, "\n".join(options(pipeline)), sections(), FORMATS, RESTORE, "\n".join(options(restore))]
    return "\n".join([*parts, "## The tables", "", *summary("reference/tables.md#{name}"), ""])
