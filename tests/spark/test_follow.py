"""Tables that are kept current: what is committed is in them soon, and they are always whole."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark.follow import Batch, CannotFollow, follow
from kohort.spark.order import Order
from kohort.spark.schema import LOG_TABLES
from kohort.testing import Broker
from tests.slow import slow
from tests.spark.live_broker import SETTINGS, TOPIC, Transaction, commit
from tests.spark.runs import Watched, by_place, rows_in, rows_read

PATIENCE_S = 300.0


@contextmanager
def followed(spark: SparkSession, order: Order, refresh_s: float = 3600.0) -> Iterator["Followed"]:
    """Follow in the background until the end of the block."""
    over = threading.Event()
    batches: list[Batch] = []
    with ThreadPoolExecutor(1) as thread:
        going_on = thread.submit(
            follow, spark, order, Watched(), batches.append, refresh_s=refresh_s, is_over=over.is_set
        )
        going_on.add_done_callback(lambda _: over.set())
        try:
            yield Followed(batches, over)
        finally:
            over.set()
            going_on.result()


@dataclass(frozen=True)
class Followed:
    """What a test sees of it."""

    batches: list[Batch]
    over: threading.Event

    def wait_until(self, condition: Callable[[], bool]) -> float:
        """Wait until something is so; how long that took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() < began + PATIENCE_S
            assert not self.over.wait(0.05)
        return time.monotonic() - began


def table(out: Path, name: str) -> list[dict[str, Any]]:
    """A table, or nothing while it changes places."""
    try:
        return rows_in(out, name)
    except (FileNotFoundError, ValueError):
        return []


def offset_of(out: Path, group: str) -> int | None:
    return next((row["committed_offset"] for row in table(out, "current_offsets") if row["group"] == group), None)


@slow
@pytest.mark.parametrize("is_live", [True, False], ids=["a cluster", "files"])
def test_a_commit_is_in_the_tables_soon(
    spark: SparkSession, tmp_path: Path, is_live: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    with Broker(data, settings=SETTINGS) as broker:
        address = broker.bootstrap_servers
        broker.create_topic(TOPIC, 2)
        transaction = Transaction(address, "transacting")
        transaction.offer(7)
        commit(address, "steady", 1)
        order = Order(source=f"kafka://{address}" if is_live else str(data), out=out)
        with followed(spark, order) as following:
            following.wait_until(lambda: offset_of(out, "steady") == 1)
            took = []
            for offset in (2, 3, 4):
                commit(address, "steady", offset)
                took.append(following.wait_until(lambda wanted=offset: offset_of(out, "steady") == wanted))
            with capsys.disabled():
                sys.stdout.write(f"\nin current_offsets after {', '.join(f'{seconds:.1f}' for seconds in took)} s\n")
            assert [row["fate"] for row in table(out, "offset_commits") if row["group"] == "transacting"] == ["open"]
            transaction.commit()
            following.wait_until(lambda: offset_of(out, "transacting") == 7)
        transaction.close()
        # Another start goes on where this one ended, and does again what seems to have been left half done.
        last = following.batches[-1].number
        for name in (f"{last}", f".{last}.crc"):
            (out / ".follow/checkpoint/commits" / name).unlink(missing_ok=True)  # it may have been left so
        commit(address, "steady", 5)
        with followed(spark, order) as again:
            again.wait_until(lambda: offset_of(out, "steady") == 5)
        assert [batch.number for batch in again.batches] == [last, last + 1]
    for name in LOG_TABLES:
        assert by_place(rows_in(out, name)) == by_place(rows_read(data, name))


@slow
def test_derived_tables_are_made_anew(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Broker(tmp_path / "data", settings=SETTINGS) as broker:
        broker.create_topic(TOPIC, 2)
        commit(broker.bootstrap_servers, "first", 1)
        order = Order(source=f"kafka://{broker.bootstrap_servers}", out=out)
        with followed(spark, order, refresh_s=0.0) as following:
            following.wait_until(lambda: offset_of(out, "first") == 1)
            commit(broker.bootstrap_servers, "second", 1)
            following.wait_until(lambda: {row["group"] for row in table(out, "lag")} == {"first", "second"})


def test_what_cannot_be_followed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CannotFollow, match="not both"):
        follow(spark, Order(source="x", out=tmp_path, as_of=5), Watched(), lambda _: None, refresh_s=1)
    with pytest.raises(CannotFollow, match="only tables of format parquet"):
        follow(spark, Order(source="x", out=tmp_path, format="delta"), Watched(), lambda _: None, refresh_s=1)
