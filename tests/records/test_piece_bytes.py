"""Pieces as bytes: what comes back is what went, and nothing else is taken for it."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.errors import CorruptLog
from kohort.records.batch import read_batches
from kohort.records.finish import finish
from kohort.records.piece_bytes import piece_from_bytes, piece_to_bytes
from kohort.records.replay import Rule
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.pieces import merged, outcome, piece_of
from tests.records.serial_load import serial_load
from tests.records.strategies import coordinator_logs

rules = pytest.mark.parametrize("rule", Rule)


@rules
@given(
    log=coordinator_logs(),
    cuts=st.sets(st.integers(0, 24), max_size=6),
    brackets=st.lists(st.integers(0, 9), max_size=6),
)
@settings(max_examples=200, deadline=None)
def test_pieces_that_travelled_merge_to_the_serial_load(
    rule: Rule, log: list[bytes], cuts: set[int], brackets: list[int]
) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    parts = [b"".join(log[a:b]) for a, b in itertools.pairwise(bounds)]
    pieces = [piece_from_bytes(piece_to_bytes(piece_of(part, rule))) for part in parts]
    whole = piece_from_bytes(piece_to_bytes(merged(pieces, brackets)))
    assert outcome(whole) == serial_load(read_batches(b"".join(log)), rule)


@rules
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_a_golden_log_that_travelled_finishes_the_same(rule: Rule, golden: GoldenSet) -> None:
    for paths in golden.partitions().values():
        piece = piece_of(b"".join(path.read_bytes() for path in paths), rule)
        there = piece_from_bytes(piece_to_bytes(piece))
        assert finish([there]) == finish([piece])
        assert {put.position: put.timestamp for _, _, put in there.pending()} == {
            put.position: put.timestamp for _, _, put in piece.pending()
        }


def some_bytes() -> bytes:
    return piece_to_bytes(piece_of(GOLDEN[0].segments()[0][1].read_bytes(), Rule.POSITION))


def test_any_flipped_bit_is_noticed() -> None:
    data = some_bytes()
    for at in [*range(24), *range(24, len(data), 97)]:
        with pytest.raises(CorruptLog):
            piece_from_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])


@pytest.mark.parametrize("size", [0, 5, 15, 16, 100])
def test_a_piece_that_is_cut_is_refused(size: int) -> None:
    with pytest.raises(CorruptLog):
        piece_from_bytes(some_bytes()[:size])


def test_another_version_is_told_by_its_number() -> None:
    data = some_bytes()
    with pytest.raises(CorruptLog, match="version 7, where 1 is understood"):
        piece_from_bytes(data[:8] + (7).to_bytes(4, "little") + data[12:])


def test_a_piece_has_the_size_of_the_state_not_of_the_log() -> None:
    data = GOLDEN[0].segments()[0][1].read_bytes()
    once = piece_of(data, Rule.POSITION)
    often = piece_of(data, Rule.POSITION)
    for _ in range(20):
        often = often.merge(piece_of(data, Rule.POSITION))
    assert len(piece_to_bytes(often)) == len(piece_to_bytes(once))
