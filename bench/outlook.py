"""What was never measured: the pipeline on a terabyte and more, on more cores than there are here.

Everything here is foretold from fitted costs, and says so. The assumptions are rows of the table, beside what they lead
to. Two figures bound a time: the lower one keeps every core busy all the time, the higher one as busy as the cores were
where the costs were measured.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.cost_model import ONCE, Costs
from bench.logs import SEGMENT_BYTES
from bench.rows import Row, told
from kohort.spark.inputs import SHARE_BYTES
from kohort.spark.replaying import FAN_IN

CORES = 2
"""On how many cores costs are measured."""

ONE_PROCESS, WRITTEN, REPLAYED, PIPELINE = "one process", "offset_commits", "current_offsets", "pipeline"
STAGES = (ONE_PROCESS, WRITTEN, REPLAYED, PIPELINE)
CLOCK, PROCESSOR, SHUFFLED, LEFT, PEAK = "clock", "processor", "bytes shuffled", "bytes left", "bytes of memory"
"""What is measured of a stage: seconds, seconds of all processors, and bytes."""

Quantity = tuple[str, str]
"""A stage, and what is measured of it."""

ON_CORES = (8, 32, 128)
IDLE = 0.25
"""Cores that others may use while costs are measured, before the clock says too much."""
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """What a task takes that merges as many pieces as one ever does. An entry is a key in a piece."""

    once_mib: float
    mib_per_key: float
    bytes_per_entry: float
    seconds_per_entry: float


@dataclass(frozen=True, slots=True)
class Target:
    """A log that is not here."""

    name: str
    bytes: float
    partitions: int
    keys: float

    @property
    def sizes(self) -> dict[str, float]:
        return {"bytes": self.bytes, "keys": self.keys, "segments": self.bytes / SEGMENT_BYTES}

    @property
    def entries(self) -> float:
        """The keys of all pieces together, if each piece has every key of its partition."""
        return self.keys * max(1.0, self.bytes / SHARE_BYTES / self.partitions)


TARGETS = (
    Target("1 TB in 50 partitions", 1e12, 50, 1e6),
    Target("50 partitions of 100 GB", 5e12, 50, 5e6),
)


def outlook(costs: Mapping[Quantity, Costs], merging: Merging, others: float) -> Iterator[Row]:
    """The forecasts and what they rest on; `others` is how many cores others used while costs were measured."""
    if others > IDLE:
        yield told("NOT A QUIET MACHINE", "what is told by the clock is too much: higher figures below, core-hours")
    yield told(
        "measured: a merge of 16 pieces", f"{merging.once_mib:.0f} MiB + {merging.mib_per_key * 1024:.2f} KiB a key"
    )
    yield told(
        "... a key in a piece", f"{merging.bytes_per_entry:.0f} B, {merging.seconds_per_entry * 1e6:.2f} µs to merge"
    )
    yield told(
        "assumed below", f"segments of {SEGMENT_BYTES / 1e6:.0f} MB; each key in each {SHARE_BYTES / _GIB:g} GiB"
    )
    yield told("assumed below", "cores as fast as these, each with its share of the work, and storage that keeps up")
    yield told("assumed below", "what is done once, and what a segment costs, is not divided among cores")
    yield told("not measured, not counted", "network, spilled sorts, tasks that are done again, machines that are slow")
    for target in TARGETS:
        yield from _forecast(target, costs, merging)


def _forecast(target: Target, costs: Mapping[Quantity, Costs], merging: Merging) -> Iterator[Row]:
    sizes = target.sizes
    keys = (
        f"{target.keys / 1e6:g} M keys, {sizes['segments']:,.0f} segments, {target.entries / 1e6:,.0f} M keys in pieces"
    )
    yield told(f"EXTRAPOLATED: {target.name}", keys)
    alone, memory = costs[ONE_PROCESS, CLOCK].of(sizes), costs[ONE_PROCESS, PEAK].of(sizes)
    yield told("... one process, the replay", f"{_hours(alone)}, {memory / _GIB:.1f} GiB of memory")
    for stage in (WRITTEN, REPLAYED, PIPELINE):
        extra = 0.0 if stage == WRITTEN else target.entries * merging.seconds_per_entry
        for cores in ON_CORES:
            least, most = seconds_on(cores, sizes, costs[stage, CLOCK], costs[stage, PROCESSOR], extra)
            rate = target.bytes * (2 if stage == PIPELINE else 1) / most / 1e6
            hours = f"{cores * least / 3600:.0f} to {cores * most / 3600:.0f} core-hours"
            figure = f"{_hours(least)} to {_hours(most)}, {hours}, reads {rate:.0f} MB/s at least"
            yield told(f"... {stage} on {cores} cores", figure)
    for stage, what in ((REPLAYED, SHUFFLED), (PIPELINE, SHUFFLED), (PIPELINE, LEFT)):
        if (stage, what) in costs:
            found = costs[stage, what].of(sizes)
            if what == SHUFFLED:
                found += target.entries * merging.bytes_per_entry
            yield told(f"... {stage}, {what}", f"{found / 1e9:,.0f} GB")
    held = merging.once_mib + target.keys / target.partitions * merging.mib_per_key
    yield told(f"... memory of a task that merges {FAN_IN} pieces of a partition", f"{held:,.0f} MiB")


def seconds_on(
    cores: int, sizes: Mapping[str, float], clock: Costs, processor: Costs, extra: float
) -> tuple[float, float]:
    """The least and the most that work takes on so many cores; `extra` is more of it, in seconds of one core."""
    by_clock, by_processor = clock.parts(sizes), processor.parts(sizes)
    undivided = by_clock[ONCE] + by_clock["segments"]
    least = (sum(by_processor.values()) - by_processor[ONCE] + extra) / cores
    most = (by_clock["bytes"] + by_clock["keys"]) * CORES / cores + extra / cores
    return undivided + min(least, most), undivided + max(least, most)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.0f} min"
