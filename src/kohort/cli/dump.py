"""`kohort dump`: every record of an offsets topic, decoded, as a table, JSON lines or CSV."""

from collections.abc import Callable, Iterator

import click

from kohort.cli.damage import DamageReport
from kohort.cli.output import csv_line, moment, printable, progress, shortened, time_text
from kohort.cli.source import source_argument
from kohort.log.source import Partition, open_source
from kohort.records.json_text import to_json
from kohort.records.rows import ROW_KEYS, Row, describe


@click.command()
@source_argument
@click.option("--topic", default="__consumer_offsets", show_default=True, help="Which topic of a log directory.")
@click.option("--format", "format_", type=click.Choice(["table", "jsonl", "csv"]), default="table", show_default=True)
@click.option("--group", help="Only records of this group.")
@click.option("--from-time", type=moment, help="Only records from this time on.")
@click.option("--to-time", type=moment, help="Only records up to this time.")
def dump(source: str, topic: str, format_: str, group: str | None, from_time: int | None, to_time: int | None) -> None:
    """Every record of an offsets topic, decoded.

    SOURCE is a segment file, a partition directory, a Kafka log directory, or kafka://HOST:PORT of a live cluster.

    \b
    Examples:
      kohort dump /var/lib/kafka/data
      kohort dump __consumer_offsets-12/00000000000000000000.log --format jsonl --group billing
      kohort dump kafka://localhost:9092 --from-time 2026-11-16T02:10 --to-time 2026-11-16T03:40
    """
    damage = DamageReport()
    line, heading = _FORMATS[format_]
    with (
        open_source(source, topic) as partitions,
        progress("dump", sum(partition.size for partition in partitions)) as advance,
    ):
        if heading is not None:
            click.echo(heading)
        for partition in partitions:
            for row in _rows(partition, damage, advance):
                if (
                    (group is None or row.get("group") == group)
                    and (from_time is None or row["timestamp"] >= from_time)
                    and (to_time is None or row["timestamp"] <= to_time)
                ):
                    click.echo(line(row))
    damage.exit()


def _rows(partition: Partition, damage: DamageReport, advance: Callable[[int], None]) -> Iterator[Row]:
    for batch in partition.batches(damage, advance):
        for record in batch.records:
            yield describe(partition.partition, batch.header, record)


_WIDEST_PHRASE = 1_000
_TABLE_HEADING = f"{'PART':>4}  {'OFFSET':>10}  {'TIME (UTC)':<23}  {'KIND':<16}  GROUP  WHAT"


def _table_line(row: Row) -> str:
    group = shortened(printable(row.get("group", "-")))
    return (
        f"{row['partition']:>4}  {row['offset']:>10}  {time_text(row['timestamp']):<23}  "
        f"{row['kind']:<16}  {group}  {shortened(printable(_what(row)), _WIDEST_PHRASE)}"
    )


def _what(row: Row) -> str:
    """The gist of a record in one phrase."""
    by = f" [transaction of producer {row['producer_id']}]" if row["transactional"] and not row["control"] else ""
    if row["control"]:
        return f"{row['control_type'] or 'unreadable control record'} of producer {row['producer_id']}"
    if "reason" in row:
        return f"unreadable: {row['reason']}"
    if row["kind"] == "offset_commit":
        where = f"{row['topic']}-{row['topic_partition']}"
        if row["tombstone"]:
            return f"{where} removed{by}"
        metadata = f" {row['metadata']!r}" if row["metadata"] else ""
        return f"{where} at {row['committed_offset']}{metadata}{by}"
    if row["tombstone"]:
        return "removed"
    if row["kind"] == "group_metadata":
        count = len(row["members"])
        protocol = f" {row['protocol']}" if row["protocol"] else ""
        return f"generation {row['generation']}{protocol}, {count} member{'s' if count != 1 else ''}"
    return to_json(row["value"])


def _csv_row(row: Row) -> str:
    cells = (row.get(name) for name in ROW_KEYS)
    return csv_line([to_json(cell).strip('"') if isinstance(cell, dict | list | bytes) else cell for cell in cells])


_FORMATS: dict[str, tuple[Callable[[Row], str], str | None]] = {
    "table": (_table_line, _TABLE_HEADING),
    "jsonl": (to_json, None),
    "csv": (_csv_row, ",".join(ROW_KEYS)),
}
