"""Where the data topics of a live cluster end, and when records were produced, for the lag of its groups.

Of each partition the cluster tells its first and last offset. The time of a record stands in the header of its batch:
it is fetched for the offsets that groups have committed, so that the age of the next record to be read is known, and
for the last record.
"""

import time
from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kohort.errors import CorruptLog
from kohort.log.cluster import EARLIEST, LATEST, LiveCluster, TopicPartition
from kohort.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, claimed_end, read_header
from kohort.spark.arrays import time_or_none
from kohort.spark.data_segments import NOT_DATA, Ends, Sample, rising
from kohort.spark.live import LiveAddress
from kohort.spark.schema import arrow_schema_of

MOST_SAMPLES = 16
"""So many records of a partition are asked for their time."""

_PARTITIONS_AT_ONCE = 200
_ROOM = 4096


def find_live_ends(address: LiveAddress, offsets_topic: str, committed: Mapping[TopicPartition, Iterable[int]]) -> Ends:
    """The ends of all data topics, with the times of records at committed offsets."""
    with address.connect() as cluster:
        keys = [
            (topic, number)
            for topic in sorted(cluster.topics() - {offsets_topic, *NOT_DATA})
            for number in cluster.partitions_of(topic)
        ]
        first, last = cluster.offsets(keys, EARLIEST), cluster.offsets(keys, LATEST)
        at = time_or_none(time.time_ns() // 1_000_000)
        wanted = {key: _inside([*committed.get(key, ()), last[key] - 1], first[key], last[key]) for key in keys}
        samples = _times(cluster, wanted)
    ends = [
        {"topic": key[0], "topic_partition": key[1], "start_offset": first[key], "end_offset": last[key], "at": at}
        for key in keys
    ]
    times = [
        {"topic": key[0], "topic_partition": key[1], "offset": offset, "timestamp": time_or_none(timestamp)}
        for key in keys
        for timestamp, offset in rising(samples.get(key, []))
    ]
    return Ends(
        pa.Table.from_pylist(ends, schema=arrow_schema_of("end_offsets")),
        pa.Table.from_pylist(times, schema=arrow_schema_of("topic_times")),
    )


def committed_offsets(current: DataFrame) -> dict[TopicPartition, list[int]]:
    """Some of the offsets that groups have committed of each topic partition."""
    rows = (
        current.groupBy("topic", "topic_partition")
        .agg(fn.sort_array(fn.collect_set("committed_offset")).alias("offsets"))
        .withColumn("step", fn.ceil(fn.size("offsets") / MOST_SAMPLES).cast("int"))
        .select("topic", "topic_partition", fn.filter("offsets", lambda _, at: at % fn.col("step") == 0).alias("some"))
    )
    return {(row["topic"], row["topic_partition"]): row["some"] for row in rows.collect()}


def _inside(offsets: Iterable[int], first: int, last: int) -> list[int]:
    """Some of the offsets that there are records at, the highest among them."""
    there = sorted({offset for offset in offsets if first <= offset < last}, reverse=True)
    return there[:: max(1, -(-len(there) // MOST_SAMPLES))]


def _times(cluster: LiveCluster, wanted: Mapping[TopicPartition, list[int]]) -> dict[TopicPartition, list[Sample]]:
    """Times and offsets of the batches that hold the wanted offsets; one offset of many partitions at a time."""
    found: dict[TopicPartition, list[Sample]] = {}
    for turn in range(max(map(len, wanted.values()), default=0)):
        asked = {key: offsets[turn] for key, offsets in wanted.items() if turn < len(offsets)}
        names = list(asked)
        for start in range(0, len(names), _PARTITIONS_AT_ONCE):
            part = {key: asked[key] for key in names[start : start + _PARTITIONS_AT_ONCE]}
            for key, data in cluster.fetch_many(part, _ROOM).items():
                header = _header(data)
                if header is not None and NO_TIMESTAMP not in (header.base_timestamp, header.max_timestamp):
                    samples = ((header.base_timestamp, header.base_offset), (header.max_timestamp, header.last_offset))
                    found.setdefault(key, []).extend(s for s in samples if time_or_none(s[0]) is not None)
    return found


def _header(data: bytes) -> BatchHeader | None:
    """The header of the batch with which some bytes begin, which may end before it does."""
    end = claimed_end(data, 0)
    if end is None or len(data) < HEADER_SIZE:
        return None
    try:
        # Only the header is looked at, so the rest of the batch may as well be zeros.
        return read_header(data[:HEADER_SIZE] + bytes(max(0, end - HEADER_SIZE)), verify=False)
    except CorruptLog:
        return None
