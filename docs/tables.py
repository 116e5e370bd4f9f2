"""Writes `docs/reference/tables.md`: every table that `kohort pipeline` leaves, with its columns, from the schemas."""

from collections.abc import Iterator

from docs.options import cells
from kohort.spark.pipeline import TABLES
from kohort.spark.schema import columns_of, schema_of

INTRO = """# Tables

<!-- written by `python -m docs` from the tables' schemas -->

What [`kohort pipeline`](../pipeline.md) leaves in its directory: Parquet files, with these comments on the columns.
Times are instants in UTC; in `records` they are the milliseconds that stand in the log.
"""

MEANINGS = {
    "records": "Every record of the log as it stands there.",
    "offset_commits": "Every commit of an offset, with what became of its transaction.",
    "group_generations": "Every state of a group that its coordinator wrote down.",
    "members": "Who belonged to each of those generations.",
    "assignments": "Which member owned which partition in each of them.",
    "quarantine": "What could not be read, and why.",
    "current_groups": "The groups at the end, as a coordinator would load them.",
    "current_offsets": "Their offsets at the end.",
    "pending_offsets": "Offsets that wait for the end of their transaction.",
    "rebalances": "What changed from one generation to the next, and why.",
    "lag": "How far each offset is behind, in messages and in time.",
    "lag_status": "Burrow's status at every commit of the past, where it changed.",
    "expiry": "When each offset will be forgotten, and by which rule.",
    "topic_health": "What fills the offsets topic, by group and by partition.",
    "offset_jumps": "Offsets that went back, or ahead faster than anybody reads.",
}


def page() -> str:
    """The whole of `docs/reference/tables.md`."""
    return "\n".join([INTRO, *summary("#{name}"), "", *_tables()]).rstrip("\n") + "\n"


def summary(link: str) -> Iterator[str]:
    """The tables, a line each."""
    if set(MEANINGS) != set(TABLES):
        raise LookupError(f"tables without a meaning, or the reverse: {sorted(set(MEANINGS) ^ set(TABLES))}")
    yield "| table | |"
    yield "|---|---|"
    for table in TABLES:
        yield cells(f"[`{table}`]({link.format(name=table)})", MEANINGS[table])


def _tables() -> Iterator[str]:
    for table in TABLES:
        yield f"## {table}"
        yield ""
        yield MEANINGS[table]
        yield ""
        yield "| column | type | |"
        yield "|---|---|---|"
        types = {field.name: field.dataType.simpleString() for field in schema_of(table)}
        for column in columns_of(table):
            yield cells(f"`{column.name}`", _shortened(types[column.name]), column.comment)
        yield ""


def _shortened(type_: str) -> str:
    """Structures are told by their columns' comments; their fields would fill the page."""
    return type_ if len(type_) < 40 else "array of structures"
