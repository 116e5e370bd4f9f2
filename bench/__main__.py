"""`make bench`: every figure of this project's ground, measured in one run and told as ratios.

python -m bench [--quick | --huge] [--json FILE]
                [--coordinator | --broker | --secure | --spark | --report | --scale | --load]
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import broker, following, heartbeats, kafka, permissions, reporting, scale, secure, spark, store
from bench.beside import FULL, QUICK
from bench.logs import write_log
from bench.rows import all_hold, bounded, show

COMMITS = 3_000_000
PARTITIONS = 1


def worker(what: str, path: Path, times: int = 3) -> dict[str, float]:
    """The best of a few runs, for the machines are noisy."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", what, str(path), str(times)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def rate(run: dict[str, float]) -> float:
    return run["records"] / run["seconds"]


def loading(work: Path) -> list[dict[str, Any]]:
    log = work / "log"
    records = write_log(log, COMMITS, partitions=PARTITIONS)
    ours = worker("columns", log)
    scalar = worker("scalar", log)
    rows = [
        {"what": "columns + replay", "figure": f"{rate(ours) / 1e6:.1f} M records/s"},
        bounded("... against the scalar codec", rate(ours) / rate(scalar), 10),
    ]
    if not kafka.available():
        return [*rows, {"what": "... against Apache Kafka", "figure": "not measured: no Java or Maven here"}]
    theirs = kafka.load_seconds(log, work / "kafka", PARTITIONS)
    dump_rate = records / kafka.dump_seconds(sorted(log.rglob("*.log")), work / "dump.txt")
    return [
        *rows,
        {"what": f"Kafka {kafka.VERSION}'s own loader", "figure": f"{records / theirs / 1e6:.2f} M records/s"},
        bounded("... ours against it", rate(ours) / (records / theirs), 5),
        {"what": "kafka-dump-log --offsets-decoder, to a file", "figure": f"{dump_rate / 1e6:.3f} M records/s"},
        bounded("... ours against it", rate(ours) / dump_rate, 50),
    ]


def recovering(work: Path) -> list[dict[str, Any]]:
    write_log(work / "recovery", 1_200_000)
    directory = work / "recovery" / "__consumer_offsets-0"
    segment = max(directory.glob("*.log"), key=lambda path: path.stat().st_size)
    floor = worker("checksum", segment, 5)
    for other in directory.glob("*.log"):
        if other != segment:
            other.unlink()
    scan = worker("recovery", directory, 5)
    mib = segment.stat().st_size / (1 << 20)
    return [
        {"what": f"recovery scan of {mib:.0f} MiB", "figure": f"{scan['seconds'] * 1000:.0f} ms"},
        bounded("... against one read and one CRC-32C", scan["seconds"] / floor["seconds"], 3, at_most=True),
    ]


def memory(work: Path) -> list[dict[str, Any]]:
    log = work / "gibibyte"
    write_log(log, 13_000_000)
    size = sum(path.stat().st_size for path in log.rglob("*.log")) / (1 << 30)
    command = [Path(sys.executable).parent / "kohort", "state", log, "--format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"kohort state ended with status {status}")
    what = f"memory of `kohort state` on a log of {size:.2f} GiB, MiB"
    return [bounded(what, usage.ru_maxrss / 1024, 600, at_most=True)]


def growing(work: Path, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    rows, first = [], None
    for size in sizes:
        log = work / f"of-{size}"
        records = write_log(log, size)
        run = worker("columns", log, 3 if size < 50_000_000 else 1)
        per_record = run["seconds"] / records
        first = first or per_record
        figure = f"{run['seconds']:.2f} s, {per_record * 1e9:.0f} ns a record, {run['max_rss_mib']:.0f} MiB"
        rows.append({"what": f"{records / 1e6:.0f} M records", "figure": figure})
        rows.append(bounded("... time per record against the smallest", per_record / first, 1.5, at_most=True))
        shutil.rmtree(log)
    return rows


def coordinating() -> list[dict[str, Any]]:
    """The coordinator alone, on a log in memory."""

    def run(what: str) -> dict[str, float]:
        done = subprocess.run(
            [sys.executable, "-m", "bench.coordinator", what], capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))

    commits, heartbeats = run("commits")["microseconds"], run("heartbeats")["microseconds"]
    rebalances = {members: run(f"rebalance-{members}")["microseconds"] for members in (10, 100, 1000)}
    groups, offsets = run("load-groups"), run("load-offsets")
    each = ", ".join(f"{cost:.1f} µs of {members}" for members, cost in rebalances.items())
    rows = [
        {"what": "a commit of 10 partitions", "figure": f"{commits:.0f} µs"},
        {"what": "a heartbeat", "figure": f"{heartbeats:.1f} µs"},
        {"what": "a full rebalance, per member", "figure": each},
        bounded("... per member, of 1,000 against 10", rebalances[1000] / rebalances[10], 2, at_most=True),
        {
            "what": "100,000 groups of one member loaded",
            "figure": f"{groups['seconds']:.1f} s, {groups['bytes'] / 100_000:.0f} bytes a group",
        },
        {
            "what": "... with 10 offsets each",
            "figure": f"{offsets['seconds']:.1f} s, {(offsets['bytes'] - groups['bytes']) / 1e6:.0f} bytes an offset",
        },
    ]
    for what, which in (("in 100,000 groups", "expiry-many-groups"), ("in one group", "expiry-one-group")):
        expired = run(which)
        rows += [
            {"what": f"a million offsets expired, {what}", "figure": f"{expired['seconds']:.1f} s"},
            bounded("... longest time that others wait, ms", expired["longest_ms"], 50, at_most=True),
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a look: shorter, smaller, and the broker without Kafka")
    size.add_argument("--huge", action="store_true", help="the pipeline on logs of up to 100 million records (25 GB)")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--coordinator", action="store_true", help="the coordinator only")
    only.add_argument("--broker", action="store_true", help="the broker only, beside Kafka and kfake")
    only.add_argument("--secure", action="store_true", help="commits with TLS, logins and ACLs, beside Kafka's own")
    only.add_argument("--store", action="store_true", help="commits in PostgreSQL, beside local files and Kafka")
    only.add_argument("--spark", action="store_true", help="the pipeline on Spark only")
    only.add_argument("--report", action="store_true", help="the report of 100 million records only (20 GB)")
    only.add_argument("--scale", action="store_true", help="what the pipeline costs, fitted, and what 1 TB would take")
    only.add_argument("--load", action="store_true", help="2,000 connections for a minute, and nothing else")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    args = parser.parse_args()
    parts = (args.coordinator, args.broker, args.secure, args.store, args.spark, args.report, args.scale, args.load)
    is_all = not any(parts)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
        work = Path(temporary)
        if is_all or args.coordinator:
            rows += coordinating()
            rows += permissions.measure()
        if is_all:
            rows += loading(work)
            rows += recovering(work)
            rows += memory(work)
            rows += growing(work, (1_000_000, 10_000_000) if args.quick else (1_000_000, 10_000_000, 100_000_000))
        if is_all or args.broker:
            rows += broker.measure(work / "broker", QUICK if args.quick else FULL)
        if is_all or args.secure:
            rows += secure.measure(work / "secure", secure.QUICK if args.quick else secure.FULL)
        if is_all or args.store:
            rows += store.measure(work / "store", QUICK if args.quick else FULL)
        if is_all or args.spark:
            rows += spark.measure(work / "spark", args.quick, args.huge)
            rows += following.measure(work / "following")
        if args.report:
            rows += reporting.measure(work / "report", args.quick)
        if args.scale:
            rows += scale.measure(work / "scale", args.quick)
        if args.load:
            rows += heartbeats.measure(work / "load", 10 if args.quick else heartbeats.SECONDS)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine}")
    show(rows)
    print(json.dumps(rows))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    sys.exit(not all_hold(rows))


if __name__ == "__main__":
    main()
