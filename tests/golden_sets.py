"""The logs that real brokers wrote, and what Kafka itself says is in them."""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohort.records.replay import Rule

ROOT = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class GoldenSet:
    name: str

    @property
    def path(self) -> Path:
        return ROOT / self.name

    @property
    def loads_by(self) -> Rule:
        """The rule by which the broker that wrote this set loads it."""
        return Rule.POSITION if "Apache Kafka 4." in (self.path / "README.md").read_text() else Rule.KAFKA_2_6

    def partitions(self) -> dict[int, list[Path]]:
        """The segments of each partition, in order."""
        found = {int(path.name.rsplit("-", 1)[1]): path for path in self.path.glob("__consumer_offsets-*")}
        return {number: sorted(path.glob("*.log")) for number, path in sorted(found.items())}

    def segments(self) -> list[tuple[int, Path]]:
        return [(number, path) for number, paths in self.partitions().items() for path in paths]

    def state(self) -> dict[str, Any]:
        """What the running broker answered."""
        return json.loads((self.path / "state.json").read_text())

    def state_reloaded(self) -> dict[str, Any]:
        """What the same broker answered after it loaded this very log."""
        return json.loads((self.path / "state_reloaded.json").read_text())

    def dumped(self) -> dict[str, list[dict[str, Any]]]:
        """Kafka's own decoding: per segment the batches, each with its records."""
        segments: dict[str, list[dict[str, Any]]] = {}
        batches: list[dict[str, Any]] = []
        for line in gzip.decompress((self.path / "dump.txt.gz").read_bytes()).decode().split("\n"):
            if line.startswith("Dumping "):
                batches = segments.setdefault(line.removeprefix("Dumping ").strip(), [])
            elif line.startswith("| "):
                batches[-1]["records"].append(_record(line[2:]))
            elif line.startswith(("baseOffset:", "offset:")):
                batches.append(dict(re.findall(r"(\w+): (\S+)", line)) | {"records": []})
        return segments


def _record(line: str) -> dict[str, Any]:
    fields, _, rest = line.partition(" key: ")
    record: dict[str, Any] = dict(re.findall(r"(\w+): (\S+)", fields))
    if not rest:
        return record
    record["key"], end = json.JSONDecoder().raw_decode(rest)
    payload = rest[end:].removeprefix(" payload: ")
    record["payload"] = None if payload == "<DELETE>" else json.loads(payload)
    return record


GOLDEN = [GoldenSet(path.name) for path in sorted(ROOT.iterdir()) if path.is_dir()]
