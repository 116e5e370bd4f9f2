"""`kohort restore`: the offsets of groups as they were at a time, as a plan, and back into a cluster."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kohort.cli.command_config import COMMAND_CONFIG_HELP
from kohort.cli.output import moment, printable, shortened, table, time_text
from kohort.cli.plan_output import put_plan
from kohort.cli.spark_session import need_spark, setting, spark_for
from kohort.errors import KohortError
from kohort.log.security import parse_security, read_properties
from kohort.spark.restore_plan import Compared, Planned, Verdict, compare, formulas, to_csv, unwritable

if TYPE_CHECKING:
    from kohort.spark.restore_target import GroupNow, Target

_NAMED = 5
"""How many groups or offsets a line names."""


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--as-of", required=True, type=moment, help="The time whose offsets are wanted.")
@click.option("--group", "groups", multiple=True, help="Only this group; may be given several times.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the plan here, not to stdout.")
@click.option("--bootstrap", metavar="HOST:PORT", help="The cluster to compare with.")
@click.option("--command-config", type=click.Path(path_type=Path), help=COMMAND_CONFIG_HELP)
@click.option("--clamp", is_flag=True, help="Take the nearest offset that the cluster holds.")
@click.option("--apply", "apply_", is_flag=True, help="Set the offsets in the cluster, after asking.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--master", help="Spark's master; all cores of this machine by default.")
@click.option("--conf", "settings", multiple=True, type=setting, help="A setting of Spark's: spark.name=value.")
def restore(
    directory: Path,
    as_of: int,
    groups: tuple[str, ...],
    out: Path | None,
    bootstrap: str | None,
    command_config: Path | None,
    clamp: bool,
    apply_: bool,
    yes: bool,
    master: str | None,
    settings: tuple[tuple[str, str], ...],
) -> None:
    """The offsets of groups as they were at a time.

    DIRECTORY holds the tables of `kohort pipeline`. The plan is CSV as `kafka-consumer-groups --reset-offsets
    --from-file` reads it: topic, partition, offset; if there are several groups, with the group in front. With
    --bootstrap it is compared with a cluster, with --apply set in it; groups that have members are refused.

    \b
    Examples:
      kohort restore tables --as-of 2026-11-16T03:12 --out plan.csv
      kohort restore tables --as-of 2026-11-16T03:12 --group billing --bootstrap localhost:9092
      kohort restore tables --as-of 2026-11-16T03:12 --bootstrap localhost:9092 --clamp --apply
    """
    if bootstrap is None and (apply_ or clamp):
        raise click.UsageError(f"{'--apply' if apply_ else '--clamp'} needs --bootstrap")
    if yes and not apply_:
        raise click.UsageError("--yes goes with --apply")
    plan = _planned(directory, as_of, groups, master, dict(settings))
    if bootstrap is None:
        _write(plan, out)
        return
    from kohort.spark.restore_target import Target

    security = parse_security({} if command_config is None else read_properties(command_config))
    with Target(bootstrap, security) as target:
        there = target.groups(sorted({planned.group for planned in plan}))
        compared = _compared(plan, target, there, clamp)
        final = [row.clamped() for row in compared] if clamp else plan
        if out is not None or not apply_:
            _write(final, out)
        if apply_:
            _refuse_active(there)
            settable = [planned for planned, row in zip(final, compared, strict=True) if row.bounds is not None]
            _apply(settable, target, yes)
            if len(settable) < len(final):
                raise KohortError(f"{len(final) - len(settable)} offsets not set: {Verdict.UNKNOWN.value}")


def _planned(
    directory: Path, as_of: int, groups: Sequence[str], master: str | None, settings: Mapping[str, str]
) -> list[Planned]:
    need_spark()
    from kohort.spark.manifest import read_manifest

    manifest = read_manifest(directory)
    with spark_for(master, settings, manifest.format, directory) as spark:
        from kohort.spark.restore import plan_from

        plan = plan_from(spark, directory, as_of, groups)
    if as_of > manifest.at_millis:
        _warn(f"the tables reach to {time_text(manifest.at_millis)} UTC: what was committed after that is not in them")
    return plan


def _write(plan: Sequence[Planned], out: Path | None) -> None:
    """The plan as a file. What such a file cannot say is left out of it, and is a failure."""
    left_out = set(unwritable(plan))
    written = [planned for planned in plan if planned.group not in left_out]
    count = len({planned.group for planned in written})
    put_plan(to_csv(written), out, len(written), count, instead="--out FILE")
    if odd := formulas(written):
        _warn(f"a spreadsheet would take the names of these groups for formulas: {_names(odd)}")
    if left_out:
        raise KohortError(f"left out, for a plan's lines cannot hold their names: {_names(sorted(left_out))}")


def _compared(
    plan: Sequence[Planned], target: "Target", there: Mapping[str, "GroupNow"], clamp: bool
) -> list[Compared]:
    """The plan beside the cluster, shown."""
    bounds = target.bounds({(planned.topic, planned.partition) for planned in plan})
    compared = compare(plan, {name: group.offsets for name, group in there.items()}, bounds)
    for line in _difference(compared, clamp):
        click.echo(line, err=True)
    counted = Counter(row.verdict for row in compared)
    click.echo(", ".join(f"{counted[verdict]} {verdict.value}" for verdict in Verdict if counted[verdict]), err=True)
    if not clamp and counted[Verdict.BEFORE_START] + counted[Verdict.BEHIND_END]:
        _warn("consumers start elsewhere where an offset is not in the log (auto.offset.reset); see --clamp")
    return compared


def _difference(compared: Sequence[Compared], clamp: bool) -> Iterator[str]:
    """A line for each offset that is not already what it is to be."""
    rows = []
    for row in compared:
        if row.verdict is not Verdict.SAME:
            planned = row.clamped() if clamp else row.planned
            start, end = ("-", "-") if row.bounds is None else (str(row.bounds.start), str(row.bounds.end))
            now = "-" if row.present is None else str(row.present)
            told = (now, str(row.planned.offset), str(planned.offset), start, end, row.verdict.value)
            rows.append([planned.group, planned.topic, str(planned.partition), *told])
    if rows:
        yield from table(["GROUP", "TOPIC", "PARTITION", "NOW", "THEN", "TO SET", "START", "END", "WHAT"], rows)


def _refuse_active(there: Mapping[str, "GroupNow"]) -> None:
    active = {name: group for name, group in there.items() if not group.is_at_rest}
    if active:
        told = [f"{name} ({group.state}, {group.members} members)" for name, group in sorted(active.items())]
        raise KohortError(f"nothing is set: stop the consumers of these groups first: {_names(told)}")


def _apply(plan: Sequence[Planned], target: "Target", yes: bool) -> None:
    """Set the offsets, after asking, and look whether the cluster has them."""
    groups = sorted({planned.group for planned in plan})
    if not yes:
        click.confirm(f"Set {len(plan)} offsets of {len(groups)} groups?", abort=True, err=True)
    refused = target.commit(plan)
    there = target.groups(groups)
    missing = [
        planned
        for planned in plan
        if there[planned.group].offsets.get((planned.topic, planned.partition)) != planned.offset
    ]
    click.echo(f"kohort: {len(plan) - len(missing)} of {len(plan)} offsets set and read back", err=True)
    if refused:
        told = [f"{planned.group} {planned.topic}-{planned.partition}: {reason}" for planned, reason in refused]
        raise KohortError(f"the cluster refused {len(refused)} offsets: {_names(told)}")
    if missing:
        told = [f"{planned.group} {planned.topic}-{planned.partition}" for planned in missing]
        raise KohortError(f"the cluster took {len(missing)} offsets and has others: {_names(told)}")


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(shortened(printable(name)) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _warn(line: str) -> None:
    click.echo(f"kohort: warning: {line}", err=True)
