"""`kohort groups`: the consumer groups of a running cluster, looked at and changed."""

import click

from kohort.cli.group_deletes import delete, delete_offsets
from kohort.cli.group_files import export, import_
from kohort.cli.group_reset import reset
from kohort.cli.group_views import describe, list_


@click.group()
def groups() -> None:
    """Consumer groups of a running cluster.

    Works with any Kafka. The words and columns are those of kafka-consumer-groups.

    \b
    Examples:
      kohort groups list --bootstrap localhost:9092
      kohort groups describe --bootstrap localhost:9092 --group billing
      kohort groups reset --bootstrap localhost:9092 --group billing --topic orders --to-earliest
    """


for command in (list_, describe, reset, delete, delete_offsets, export, import_):
    groups.add_command(command)
