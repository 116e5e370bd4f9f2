"""`make bench`: every figure of this project's ground, measured in one run and told as ratios.

python -m bench [--quick] [--coordinator] [--json FILE]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import kafka
from bench.logs import write_log
from kohort.cli.output import table

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
        _ratio("... against the scalar codec", rate(ours) / rate(scalar), 10),
    ]
    if not kafka.available():
        return [*rows, {"what": "... against Apache Kafka", "figure": "not measured: no Java or Maven here"}]
    theirs = kafka.load_seconds(log, work / "kafka", PARTITIONS)
    dump_rate = records / kafka.dump_seconds(sorted(log.rglob("*.log")), work / "dump.txt")
    return [
        *rows,
        {"what": f"Kafka {kafka.VERSION}'s own loader", "figure": f"{records / theirs / 1e6:.2f} M records/s"},
        _ratio("... ours against it", rate(ours) / (records / theirs), 5),
        {"what": "kafka-dump-log --offsets-decoder, to a file", "figure": f"{dump_rate / 1e6:.3f} M records/s"},
        _ratio("... ours against it", rate(ours) / dump_rate, 50),
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
        _ratio("... against one read and one CRC-32C", scan["seconds"] / floor["seconds"], 3, at_most=True),
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
    return [_ratio(what, usage.ru_maxrss / 1024, 600, at_most=True)]


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
        rows.append(_ratio("... time per record against the smallest", per_record / first, 1.5, at_most=True))
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
        _ratio("... per member, of 1,000 against 10", rebalances[1000] / rebalances[10], 2, at_most=True),
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
            _ratio("... longest time that others wait, ms", expired["longest_ms"], 50, at_most=True),
        ]
    return rows


def _ratio(what: str, ratio: float, bound: float, *, at_most: bool = False) -> dict[str, Any]:
    holds = ratio <= bound if at_most else ratio >= bound
    relation = "≤" if at_most else "≥"
    return {
        "what": what,
        "figure": f"{ratio:.1f}",
        "ratio": ratio,
        "must": f"{relation} {bound:g}",
        "holds": holds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10 million records instead of 100 million")
    parser.add_argument("--coordinator", action="store_true", help="the coordinator only")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    rows += coordinating()
    if not args.coordinator:
        with tempfile.TemporaryDirectory(prefix="kohort-bench-") as temporary:
            work = Path(temporary)
            rows += loading(work)
            rows += recovering(work)
            rows += memory(work)
            rows += growing(work, (1_000_000, 10_000_000) if args.quick else (1_000_000, 10_000_000, 100_000_000))
    verdict = {True: "yes", False: "NO", None: ""}
    for line in table(
        ["MEASURED", "FIGURE", "MUST BE", "HOLDS"],
        [[row["what"], row["figure"], row.get("must", ""), verdict[row.get("holds")]] for row in rows],
    ):
        print(line)
    print(json.dumps(rows))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    sys.exit(any(row.get("holds") is False for row in rows))


if __name__ == "__main__":
    main()
