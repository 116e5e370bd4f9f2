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


def merging(path: str, pieces: int = 16) -> dict[str, float]:
    """The pieces of a log merged as a task of Spark's does it: bytes in, bytes out."""
    from kohort.records.piece_bytes import piece_from_bytes
    from kohort.spark.folding import fold, from_table, merge, to_table
    from kohort.spark.inputs import find_logs, share_out
    from kohort.spark.request import Request

    request = Request("folded", ())
    shares = share_out(find_logs([path], TOPIC), pieces)
    table = to_table(folded for place, share in enumerate(shares) for folded in fold(share, request, place))
    started = time.perf_counter()
    merged = to_table([merge(from_table(table))])
    seconds = time.perf_counter() - started
    entries = [piece_from_bytes(folded.piece).keys.size for folded in from_table(table)]
    (whole,) = from_table(merged)
    return {
        "seconds": seconds,
        "keys": piece_from_bytes(whole.piece).keys.size,
        "entries": sum(entries),
        "bytes": sum(len(folded.piece) for folded in from_table(table)),
    }


def main() -> None:
    measures = {"columns": columns, "scalar": scalar, "checksum": checksum, "recovery": recovery, "merging": merging}
    measure = measures[sys.argv[1]]
    best = min((measure(sys.argv[2]) for _ in range(int(sys.argv[3]))), key=lambda run: run["seconds"])
    best["max_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(best))


if __name__ == "__main__":
    main()
