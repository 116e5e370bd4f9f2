"""The replay in pieces, folded, sent, merged and finished as Spark's tasks do it, but without Spark."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kohort.errors import CorruptLog
from kohort.records.replay import Rule
from kohort.spark.finishing import finished
from kohort.spark.folding import Folded, fold, from_table, merge, to_table
from kohort.spark.inputs import find_logs, newer, share_out
from kohort.spark.replaying import FAN_IN, TABLES
from kohort.spark.request import Request
from tests.golden_sets import GOLDEN, GoldenSet
from tests.slow import slow
from tests.spark.golden_tables import Row, batches_of, in_order, tables_of

every_set = pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
rules = pytest.mark.parametrize("rule", Rule)


def replayed(path: Path, shares: int, kept: Iterable[Folded] = (), **request: Any) -> list[Folded]:
    """One piece for each log, merged in rounds."""
    asked = Request("folded", (), **request)
    logs = newer(find_logs([str(path)]), asked.since)
    pieces = [piece._replace(place=0) for piece in kept]
    for place, share in enumerate(share_out(logs, shares)):
        pieces += from_table(to_table(fold(share, asked, place + 1)))
    while len({piece.place for piece in pieces}) > 1:
        groups: dict[tuple[int, int], list[Folded]] = {}
        for piece in pieces:
            groups.setdefault((piece.partition, piece.place // FAN_IN), []).append(piece)
        pieces = [merge(reversed(group))._replace(place=key[1]) for key, group in groups.items()]
    return pieces


def tables(pieces: list[Folded]) -> dict[str, list[Row]]:
    return {table: in_order(finished(table, pieces).to_pylist()) for table in TABLES}


@rules
@every_set
def test_a_replay_in_pieces_is_the_serial_one(golden: GoldenSet, rule: Rule) -> None:
    want = tables_of(golden.path, rule)
    for shares in (1, 2, 7, 50):
        assert tables(replayed(golden.path, shares, rule=rule)) == want


def moments(golden: GoldenSet) -> list[int]:
    """Every time at which a batch came, and one before all of them."""
    found = {batch.header.max_timestamp for paths in golden.partitions().values() for batch in batches_of(paths)}
    return [min(found) - 1, *sorted(found)]


@rules
@pytest.mark.parametrize("step", [10, pytest.param(1, marks=slow)], ids=["some", "all"])
@every_set
def test_as_of_any_batch_is_the_serial_replay_of_that_prefix(golden: GoldenSet, rule: Rule, step: int) -> None:
    for number, moment in list(enumerate(moments(golden)))[::step]:
        if golden.name == "fifty-partitions" and number % 10:
            continue
        shares = (1, 2, 7, 50)[number % 4]
        assert tables(replayed(golden.path, shares, rule=rule, as_of=moment)) == tables_of(golden.path, rule, moment)


@rules
@every_set
def test_yesterday_and_today_are_all(golden: GoldenSet, rule: Rule) -> None:
    """What was kept at any time, and the rest of the log from there on."""
    want = tables_of(golden.path, rule)
    for moment in moments(golden)[::9]:
        kept = replayed(golden.path, 2, rule=rule, as_of=moment)
        since = {piece.partition: piece.next_offset for piece in kept}
        yesterday = [piece._replace(ended=False) for piece in kept]
        assert tables(replayed(golden.path, 3, yesterday, rule=rule, since=since)) == want


def test_a_piece_tells_how_far_it_came() -> None:
    golden = GOLDEN[0]
    for piece in replayed(golden.path, 7):
        batches = batches_of(golden.partitions()[piece.partition])
        assert piece.next_offset == batches[-1].header.next_offset
        assert piece.last_timestamp == max(batch.header.max_timestamp for batch in batches)


def test_damage_is_passed_over_or_raised(tmp_path: Path) -> None:
    _, source = GOLDEN[0].segments()[0]
    data = bytearray(source.read_bytes())
    data[len(data) // 2] ^= 1
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    (directory / source.name).write_bytes(data)
    for shares in (1, 7):
        assert tables(replayed(directory, shares)) == tables_of(directory)
    with pytest.raises(CorruptLog, match=f"{source.name}, byte"):
        replayed(directory, 1, fail_fast=True)
