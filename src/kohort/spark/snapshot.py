"""The topic of a live cluster, copied as it is now into a log directory, from which a run makes all of its tables.

A run reads its log more than once, and a cluster goes on to clean its own meanwhile. Besides, it is asked for every
byte only once.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kohort.log.names import LOG, offset_file
from kohort.spark.compat import parallelism
from kohort.spark.inputs import Segment
from kohort.spark.live import LiveAddress, LiveTopic, live_logs

_TASKS_A_CORE = 4
_AT_ONCE = 1 << 20


def copy_topic(spark: SparkSession, address: LiveAddress, topic: str, into: Path) -> None:
    """Fetch every segment, a task for some of them each, into a directory that all of Spark's workers see."""
    logs = live_logs(address, topic)
    for log in logs:
        directory = into / f"{topic}-{log.partition}"
        directory.mkdir(parents=True)
        if not log.segments:
            (directory / offset_file(0, LOG)).touch()
    segments = [segment for log in logs for segment in log.segments]
    if segments:
        tasks = min(len(segments), _TASKS_A_CORE * parallelism(spark))
        numbers = spark.range(0, len(segments), 1, tasks)
        numbers.mapInArrow(_Copy(tuple(segments), str(into)), "id bigint").collect()


@dataclass(frozen=True, slots=True)
class _Copy:
    """Copies those segments whose numbers it is given."""

    segments: tuple[Segment, ...]
    into: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = self.segments[0].place
        assert isinstance(place, LiveTopic)
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    self._copy(place, self.segments[number].path)
                yield batch
        finally:
            place.close()

    def _copy(self, place: LiveTopic, path: str) -> None:
        directory, name = os.path.split(path)
        target = os.path.join(self.into, os.path.basename(directory), name)
        partial = f"{target}.{os.getpid()}.partial"
        with place.open(path) as fetched, open(partial, "wb") as file:
            fetched.seek(0)
            while data := fetched.read(_AT_ONCE):
                file.write(data)
        os.replace(partial, target)


def tell_address(quarantine: Path, copied: Path, address: LiveAddress) -> None:
    """Damage that was found in the copy is damage of the cluster's log."""
    for path in quarantine.glob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        if len(rows):
            at = rows.schema.get_field_index("path")
            named = pc.replace_substring(rows.column("path"), str(copied), address.url)
            pq.write_table(rows.set_column(at, rows.schema.field("path"), named), path)
