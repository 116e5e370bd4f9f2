"""Spark for a command: started for it and stopped with it, or found running; and a word if it is not installed."""

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kohort.errors import KohortError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def setting(given: str) -> tuple[str, str]:
    """A setting of Spark's on the command line."""
    name, equals, value = given.partition("=")
    if not equals or not name.startswith("spark."):
        raise click.BadParameter(f"{given!r} is no setting of Spark's (spark.name=value)")
    return name, value


def need_spark() -> None:
    """Refuse to go on where Spark is not installed."""
    if missing := [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]:
        raise KohortError(f"{missing[0]} is not installed: pip install 'kohort[spark]'")


@contextlib.contextmanager
def spark_for(master: str | None, settings: Mapping[str, str], format_: str, out: Path) -> Iterator["SparkSession"]:
    """A session for the time of a command that reads or writes tables of a format in a directory."""
    from pyspark.sql import SparkSession

    from kohort.spark.failures import one_line_failures
    from kohort.spark.formats import settings_of
    from kohort.spark.interrupts import interrupts_between_calls
    from kohort.spark.session import get_spark

    is_ours = SparkSession.getActiveSession() is None
    with interrupts_between_calls() as listen_again:
        with one_line_failures():
            spark = get_spark(master, settings={**settings_of(format_, out), **settings}, on_context=listen_again)
        try:
            yield spark
        finally:
            if is_ours:
                spark.stop()
