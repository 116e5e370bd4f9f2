"""The replay on Spark says of a simulated broker's log what its clients have read last, and what its members were told.

The ledger believes clients, the replay believes bytes; neither knows of the broker's memory.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kohort.log.files import read_whole
from kohort.records.batch import read_batches
from kohort.spark.replaying import replay
from tests.simulation.disk import DATA
from tests.simulation.world import World
from tests.slow import nightly

_PREFIX = "__consumer_offsets-"
_PARTITIONS = 2
"""Of the offsets topic of one seed: seed 7 has the partitions 14 and 15 of the log that Spark gets to read."""
_FIRST = 50_000
"""Other seeds than those that everybody else runs."""

_TIMED_OUT_MS = 10_000 + 2_000
"""What producers ask for, and how often the broker looks."""

Offset = tuple[int, str, int]
"""A seed, a group and a partition that it has committed for."""


@pytest.fixture(scope="module", params=[20, pytest.param(1000, marks=nightly)], ids=lambda seeds: f"{seeds} seeds")
def worlds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Mapping[int, World]]:
    """Runs that have ended, and the logs of all of them side by side as if they were partitions of one topic."""
    place = tmp_path_factory.mktemp("logs")
    ended = {}
    for seed in range(request.param):
        world = ended[seed] = World(_FIRST + seed).run()
        _write_out(world, place, _PARTITIONS * seed)
    return place, ended


def _write_out(world: World, place: Path, first: int) -> None:
    files = world.machine.files()
    for name in files.list_dir(DATA):
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal():
            directory = place / f"{_PREFIX}{first + int(name.removeprefix(_PREFIX))}"
            directory.mkdir()
            for segment in files.list_dir(f"{DATA}/{name}"):
                if segment.endswith(".log"):
                    file = files.open(f"{DATA}/{name}/{segment}")
                    (directory / segment).write_bytes(file.read_at(0, file.size()))
                    file.close()


def _last_transaction_ms(world: World) -> int:
    """When the transaction coordinator has last written something, by the clock that it had then."""
    files, directory = world.machine.files(), f"{DATA}/__transaction_state-0"
    segments = [f"{directory}/{name}" for name in files.list_dir(directory) if name.endswith(".log")]
    found = (found.header.max_timestamp for path in segments for found in read_batches(read_whole(files, path)))
    return max(found)


def test_offsets_are_those_that_clients_have_read_last(
    spark: SparkSession, worlds: tuple[Path, Mapping[int, World]]
) -> None:
    place, ended = worlds
    rows = replay(spark, str(place)).offsets.collect()
    found = {
        (row["partition"] // _PARTITIONS, row["group"], row["topic_partition"]): row["committed_offset"] for row in rows
    }
    read: dict[Offset, int | None] = {
        (seed, *read.key): read.offset for seed, world in ended.items() for read in world.ledger.reads
    }
    wrong = {
        f"seed {_FIRST + key[0]}, {key[1:]}": (offset, found.get(key))
        for key, offset in read.items()
        if found.get(key) != offset
    }
    assert not wrong
    assert len(found) > len(ended)


def test_no_transaction_is_open_when_everybody_has_gone(
    spark: SparkSession, worlds: tuple[Path, Mapping[int, World]]
) -> None:
    """But for those whose time has not come because the clock was set back since they began."""
    place, ended = worlds
    pending = replay(spark, str(place)).pending.select("partition", "group").distinct().collect()
    overdue = {
        f"seed {_FIRST + seed}, {row['group']}"
        for row in pending
        if _last_transaction_ms(ended[seed := row["partition"] // _PARTITIONS]) + _TIMED_OUT_MS
        <= ended[seed].clock.now_ms()
    }
    assert not overdue


def test_a_group_is_in_no_earlier_generation_than_its_members_were_told(
    spark: SparkSession, worlds: tuple[Path, Mapping[int, World]]
) -> None:
    place, ended = worlds
    rows = replay(spark, str(place)).groups.where("generation IS NOT NULL").collect()
    found = {(row["partition"] // _PARTITIONS, row["group"]): row["generation"] for row in rows}
    told: dict[tuple[int, str], int] = {}
    """By the last who was told: a group that had nothing any more may have gone and begun anew."""
    for seed, world in ended.items():
        for share in sorted(world.ledger.syncs, key=lambda share: share.began):
            told[seed, share.group] = share.generation
    behind = {
        f"seed {_FIRST + seed}, {group}": (generation, found[seed, group])
        for (seed, group), generation in told.items()
        if (seed, group) in found and found[seed, group] < generation
    }
    assert not behind
    assert told.keys() & found.keys()
