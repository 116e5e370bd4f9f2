"""One measurement in a process of its own, so that its memory is its own too; prints one JSON object."""

import json
import resource
import sys
import time
from pathlib import Path

from crc32c import crc32c

from kohort.clock import SystemClock
from kohort.config import LogConfig
from kohort.errors import CorruptLog
from kohort.log.files import RealFiles
from kohort.log.recovery import open_log
from kohort.log.source import replay_partition
from kohort.log.stored import find_partitions
from kohort.records.finish import finish
from kohort.records.offsets_topic import decode_key, decode_value
from kohort.records.replay import Rule

TOPIC = "__consumer_offsets"


def _raise(damage: CorruptLog) -> None:
    raise damage


def _ignore(_: int) -> None:
    pass


def columns(path: str) -> dict[str, float]:
    """Columns and replay of a whole log, on one core, from the first byte to the finished state."""
    started = time.perf_counter()
    state = finish(replay_partition(p, Rule.POSITION, _raise, _ignore) for p in find_partitions(path, TOPIC))
    return {"seconds": time.perf_counter() - started, "records": state.records, "offsets": len(state.offsets)}


def scalar(path: str, limit: int = 300_000) -> dict[str, float]:
    """The scalar codec over the first records of a log, each key and value decoded and the last one kept."""
    started = time.perf_counter()
    records, last = 0, {}
    for partition in find_partitions(path, TOPIC):
        for batch in partition.batches(_raise, _ignore):
            for record in batch.records:
                key = decode_key(record.key)
                last[record.key] = decode_value(key, record.value)
            records += len(batch.records)
            if records >= limit:
                return {"seconds": time.perf_counter() - started, "records": records}
    return {"seconds": time.perf_counter() - started, "records": records}


def checksum(path: str) -> dict[str, float]:
    """The least that a recovery could do: read a segment and take one CRC-32C over it."""
    started = time.perf_counter()
    data = Path(path).read_bytes()
    crc32c(data)
    return {"seconds": time.perf_counter() - started, "bytes": len(data)}


def recovery(path: str) -> dict[str, float]:
    """The recovery scan of an unclean partition directory."""
    started = time.perf_counter()
    log = open_log(RealFiles(), path, LogConfig(), SystemClock(), clean=False)
    seconds = time.perf_counter() - started
    end = log.log_end_offset
    log.close()
    return {"seconds": seconds, "records": end}


def main() -> None:
    measure = {"columns": columns, "scalar": scalar, "checksum": checksum, "recovery": recovery}[sys.argv[1]]
    best = min((measure(sys.argv[2]) for _ in range(int(sys.argv[3]))), key=lambda run: run["seconds"])
    best["max_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(best))


if __name__ == "__main__":
    main()
