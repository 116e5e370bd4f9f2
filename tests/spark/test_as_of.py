"""As of any batch the replay says what the plain serial load of that prefix says, however the log is cut.

Every batch of every golden log and of generated ones is tried without Spark, by what its tasks do; on Spark itself, a
few.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kohort.records.batch import RecordBatch, read_batches
from kohort.records.piece_bytes import piece_from_bytes
from kohort.records.replay import Rule
from kohort.spark.folding import Folded, from_table
from kohort.spark.replaying import replay
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.pieces import outcome
from tests.records.serial_load import Loaded, serial_load
from tests.records.strategies import coordinator_logs
from tests.slow import slow
from tests.spark.golden_tables import batches_of
from tests.spark.test_folding import replayed

rules = pytest.mark.parametrize("rule", Rule)


def prefix(batches: Iterable[RecordBatch], moment: int) -> list[RecordBatch]:
    """What stands before the first batch that is later."""
    return list(takewhile(lambda batch: batch.header.max_timestamp <= moment, batches))


def moments(batches: Iterable[RecordBatch]) -> list[int]:
    """The time of every batch, and one before them all."""
    times = {batch.header.max_timestamp for batch in batches}
    return [min(times) - 1, *sorted(times)]


def said_by(pieces: Sequence[Folded]) -> Loaded:
    (folded,) = pieces
    return outcome(piece_from_bytes(folded.piece))


@rules
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=slow)], ids=["some", "all"])
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_any_batch_of_a_golden_log(golden: GoldenSet, rule: Rule, step: int) -> None:
    for number, paths in golden.partitions().items():
        batches = batches_of(paths)
        for turn, moment in list(enumerate(moments(batches) if batches else ()))[::step]:
            pieces = replayed(
                golden.path / f"__consumer_offsets-{number}", (1, 2, 7)[turn % 3], rule=rule, as_of=moment
            )
            assert said_by(pieces) == serial_load(prefix(batches, moment), rule), moment


def write_segments(directory: Path, log: Sequence[bytes], cuts: Iterable[int]) -> Path:
    """A partition of the offsets topic whose log is cut into segments before some of its batches."""
    partition = directory / "__consumer_offsets-0"
    partition.mkdir(parents=True)
    bounds = sorted({0, *(cut for cut in cuts if cut < len(log)), len(log)})
    for start, end in pairwise(bounds):
        data = b"".join(log[start:end])
        first = next(iter(read_batches(data))).header.base_offset
        (partition / f"{first:020d}.log").write_bytes(data)
    return partition


@rules
@given(log=coordinator_logs(), cuts=st.sets(st.integers(1, 24), max_size=3), shares=st.integers(1, 7))
@settings(max_examples=100, deadline=None)
def test_every_batch_of_a_generated_log(
    tmp_path_factory: pytest.TempPathFactory, rule: Rule, log: list[bytes], cuts: set[int], shares: int
) -> None:
    path = write_segments(tmp_path_factory.mktemp("log"), log, cuts)
    batches = list(read_batches(b"".join(log)))
    for moment in moments(batches):
        pieces = replayed(path, shares, rule=rule, as_of=moment)
        assert said_by(pieces) == serial_load(prefix(batches, moment), rule), moment


@slow
@rules
def test_some_batches_of_a_golden_log_on_spark(spark: SparkSession, rule: Rule) -> None:
    golden = next(golden for golden in GOLDEN if golden.name == "kafka-3.9.1")
    number, paths = max(golden.partitions().items(), key=lambda item: sum(path.stat().st_size for path in item[1]))
    batches = batches_of(paths)
    path = str(golden.path / f"__consumer_offsets-{number}")
    for moment in moments(batches)[:: max(1, len(batches) // 3)]:
        merged = replay(spark, path, rule=rule, as_of=moment, partitions=3).merged
        assert said_by(from_table(merged.toArrow())) == serial_load(prefix(batches, moment), rule), moment


@pytest.mark.parametrize("moment", [-62_135_683_140_000, -5, 0, 5, 10**18 - 1])
def test_any_time_can_be_asked_for(spark: SparkSession, moment: int) -> None:
    """Also one that has few digits as a number, or none as a date."""
    golden = next(golden for golden in GOLDEN if golden.name == "compressed-gzip")
    number, paths = min(golden.partitions().items(), key=lambda item: sum(path.stat().st_size for path in item[1]))
    merged = replay(spark, str(golden.path / f"__consumer_offsets-{number}"), as_of=moment, partitions=1).merged
    assert said_by(from_table(merged.toArrow())) == serial_load(prefix(batches_of(paths), moment), Rule.POSITION)
