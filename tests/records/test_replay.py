"""The mergeable replay: any cut, any bracketing, always the serial load."""

import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.finish import finish
from kohort.records.offsets_topic import GroupKey, OffsetKey, encode_key
from kohort.records.replay import Piece, Rule
from tests.golden_sets import GOLDEN, GoldenSet
from tests.records.pieces import appended, merged, outcome, piece_of
from tests.records.serial_load import serial_load
from tests.records.strategies import coordinator_logs

rules = pytest.mark.parametrize("rule", Rule)


@rules
@given(
    log=coordinator_logs(),
    cuts=st.sets(st.integers(0, 24), max_size=6),
    brackets=st.lists(st.integers(0, 9), max_size=6),
)
@settings(max_examples=600, deadline=None)
def test_pieces_merged_in_any_order_equal_the_serial_load(
    rule: Rule, log: list[bytes], cuts: set[int], brackets: list[int]
) -> None:
    want = serial_load(read_batches(b"".join(log)), rule)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    parts = [b"".join(log[a:b]) for a, b in itertools.pairwise(bounds)]
    assert outcome(merged([piece_of(part, rule) for part in parts], brackets)) == want
    assert outcome(appended(parts, rule)) == want


@rules
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_a_golden_log_cut_at_any_batch_loads_the_same(rule: Rule, golden: GoldenSet) -> None:
    for paths in golden.partitions().values():
        data = b"".join(path.read_bytes() for path in paths)
        batches = list(read_batches(data))
        want = serial_load(batches, rule)
        ends = [0, *(batch.header.end for batch in batches)]
        for cut in ends:
            assert outcome(merged([piece_of(data[:cut], rule), piece_of(data[cut:], rule)], [])) == want
        each = [data[a:b] for a, b in itertools.pairwise(ends)]
        for step in (1, 2, 3):
            parts = [b"".join(each[at : at + step]) for at in range(0, len(each), step)]
            for brackets in ([], range(len(parts)), range(len(parts), 0, -1), [7 * n for n in range(len(parts))]):
                assert outcome(merged([piece_of(part, rule) for part in parts], list(brackets))) == want
        assert outcome(appended(each, rule)) == want


def test_a_piece_travels_by_pickle() -> None:
    data = b"".join(path.read_bytes() for path in GOLDEN[0].partitions()[0])
    batches = list(read_batches(data))
    half = batches[len(batches) // 2].header.position
    left, right = (piece_of(part, Rule.POSITION) for part in (data[:half], data[half:]))
    there = [pickle.loads(pickle.dumps(piece)) for piece in (left, right)]
    assert outcome(merged(there, [])) == serial_load(batches, Rule.POSITION)


def test_pieces_of_different_rules_do_not_merge() -> None:
    with pytest.raises(ValueError, match="cannot take in"):
        Piece(Rule.POSITION).merge(Piece(Rule.KAFKA_2_6))


def test_the_rules_differ_where_a_transaction_outlives_a_tombstone() -> None:
    golden = next(golden for golden in GOLDEN if golden.name == "kafka-2.6.3-ibp-2.6")
    found = set()
    for paths in golden.partitions().values():
        data = b"".join(path.read_bytes() for path in paths)
        by_position, by_kafka = (outcome(piece_of(data, rule)).offsets for rule in (Rule.POSITION, Rule.KAFKA_2_6))
        found |= by_kafka.keys() - by_position.keys()
    assert found == {("k26.g-txn-pending-delete", "k26.orders", 0)}


ONE, OTHER = (encode_key(OffsetKey("a", "t", partition)) for partition in (0, 1))


def log_of(*steps: tuple[bytes, bytes | None] | ControlType) -> bytes:
    """Records of one transactional producer, a batch each, and the ends of its transactions."""
    log = b""
    for offset, step in enumerate(steps):
        if isinstance(step, ControlType):
            marker = marker_batch(Marker(step, 0), producer_id=1, producer_epoch=0, timestamp=offset)
            records, control = [marker.records[0]._replace(offset=offset)], True
        else:
            records, control = [Record(offset, offset, *step)], False
        log += RecordBatch.build(records, transactional=True, control=control, producer_id=1).encode()
    return log


@rules
def test_what_a_transaction_has_put_last_counts(rule: Rule) -> None:
    log = log_of((ONE, b"\0\3first"), (OTHER, b"\0\3other"), (ONE, b"\0\3last"), ControlType.COMMIT)
    loaded = outcome(piece_of(log, rule))
    assert loaded == serial_load(read_batches(log), rule)
    assert {key: value for key, (_, value) in loaded.offsets.items()} == {
        ("a", "t", 0): b"\0\3last",
        ("a", "t", 1): b"\0\3other",
    }


@rules
def test_a_transaction_takes_back_what_it_has_put_and_then_deleted(rule: Rule) -> None:
    log = log_of((ONE, b"\0\3first"), (OTHER, b"\0\3other"), (ONE, None), ControlType.COMMIT)
    loaded = outcome(piece_of(log, rule))
    assert loaded == serial_load(read_batches(log), rule)
    assert loaded.offsets.keys() == {("a", "t", 1)}


@pytest.mark.parametrize(
    ("rule", "sequence", "groups"),
    [(Rule.POSITION, 0, {"a"}), (Rule.POSITION, -1, set()), (Rule.KAFKA_2_6, 0, set())],
    ids=["written and loaded by 4.x", "written by an older broker", "loaded by an older broker"],
)
def test_a_group_that_has_had_offsets_is_known_where_4_x_has_written(
    rule: Rule, sequence: int, groups: set[str]
) -> None:
    records = [Record(0, 0, ONE, b"\0\3x"), Record(1, 1, ONE, None), Record(2, 2, encode_key(GroupKey("b")), None)]
    log = RecordBatch.build(records, base_sequence=sequence).encode()
    assert finish([piece_of(log, rule)]).groups.keys() == groups
