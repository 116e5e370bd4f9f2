"""What is to be read: paths to logs, logs to stretches, stretches to shares. No Spark is needed."""

import os
import pickle
from pathlib import Path

import pytest

from kohort.log.place import LOCAL
from kohort.log.source import BadSource
from kohort.records.batch import Record, RecordBatch
from kohort.spark.inputs import Log, Segment, find_logs, newer, share_out
from kohort.spark.places import RemotePlace, expand, locate
from tests.golden_sets import GOLDEN

BATCH = RecordBatch.build([Record(0, 0, b"k", b"v")]).encode()


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(BATCH)
    return root


def names(logs: list[Log]) -> list[tuple[int, list[str]]]:
    return [(log.partition, [Path(segment.path).name[18:20] for segment in log.segments]) for log in logs]


def segment(base: int) -> str:
    return f"{base:020d}.log"


def offsets(partition: int, base: int) -> str:
    return f"__consumer_offsets-{partition}/{segment(base)}"


def test_a_log_directory_gives_its_partitions_in_order(tmp_path: Path) -> None:
    make(tmp_path, offsets(10, 0), offsets(2, 7), offsets(2, 0), "orders-0/" + segment(0))
    assert names(find_logs([str(tmp_path)])) == [(2, ["00", "07"]), (10, ["00"])]


def test_only_the_last_segment_may_grow(tmp_path: Path) -> None:
    make(tmp_path, offsets(0, 0), offsets(0, 7))
    (log,) = find_logs([str(tmp_path)])
    assert [one.active for one in log.segments] == [False, True]
    assert [one.base_offset for one in log.segments] == [0, 7]


def test_patterns_and_lists_of_paths_come_together(tmp_path: Path) -> None:
    make(tmp_path, offsets(0, 0), offsets(0, 7), offsets(1, 0), offsets(12, 0))
    assert names(find_logs([f"{tmp_path}/__consumer_offsets-?"])) == [(0, ["00", "07"]), (1, ["00"])]
    assert names(find_logs([f"{tmp_path}/*-[01]/*7.log"])) == [(0, ["07"])]
    both = [str(tmp_path / "__consumer_offsets-1"), str(tmp_path / offsets(0, 7))]
    assert names(find_logs(both)) == [(0, ["07"]), (1, ["00"])]
    twice = [str(tmp_path / offsets(0, 7)), str(tmp_path / "__consumer_offsets-0")]
    assert names(find_logs(twice)) == [(0, ["00", "07"])]


def test_a_relative_pattern_starts_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, offsets(3, 0))
    monkeypatch.chdir(tmp_path)
    assert names(find_logs(["*-3"])) == [(3, ["00"])]
    assert names(find_logs(["./*/*.log"])) == [(3, ["00"])]


def test_a_name_with_a_bracket_is_no_pattern_if_it_is_there(tmp_path: Path) -> None:
    make(tmp_path / "a[1]", offsets(0, 0))
    assert names(find_logs([str(tmp_path / "a[1]")])) == [(0, ["00"])]


def test_uris_lead_to_the_same_files(tmp_path: Path) -> None:
    make(tmp_path, offsets(0, 0), offsets(0, 7))
    assert names(find_logs([f"file://{tmp_path}"])) == [(0, ["00", "07"])]
    assert names(find_logs([f"file:{tmp_path}/*"])) == [(0, ["00", "07"])]


def test_a_store_that_arrow_knows_is_listed_and_read_like_files(tmp_path: Path) -> None:
    make(tmp_path, offsets(0, 0))
    place = pickle.loads(pickle.dumps(RemotePlace(f"file://{tmp_path}")))
    directory = str(tmp_path / "__consumer_offsets-0")
    assert expand(place, f"{tmp_path}/__c*") == [directory]
    assert (place.is_directory(directory), place.is_directory(f"{directory}/x")) == (True, False)
    assert place.names(directory) == LOCAL.names(directory) == [segment(0)]
    path = f"{directory}/{segment(0)}"
    assert place.size(path) == LOCAL.size(path) == len(BATCH)
    for either in (place, LOCAL):
        with either.open(path) as file:
            room = bytearray(8)
            assert (file.seek(3), file.readinto(memoryview(room))) == (3, 8)
            assert bytes(room) == BATCH[3:11]
        with pytest.raises(FileNotFoundError):
            either.size(f"{directory}/x")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nothing", "No such file or directory; expected a segment file"),
        ("nothing-*", "nothing is there that matches"),
        ("empty", "there is no log in it"),
        ("text", "not a Kafka log"),
        ("topics", "no partition of __consumer_offsets: it holds the topics orders, payments"),
        ("topics/orders-0", "a partition of orders, not of __consumer_offsets; to read it, name it as the topic"),
        ("topics/orders-0/" + segment(0), "a partition of orders, not of __consumer_offsets"),
        ("[ab]", r"partition 5 is given twice: .*a/__consumer_offsets-5 and .*b/__consumer_offsets-5"),
        ("m*d/*", "a partition of orders, not of __consumer_offsets"),
    ],
)
def test_what_is_no_log_of_ours_is_told_in_a_line(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello, this is no log\n" * 9)
    make(tmp_path / "topics", "orders-0/" + segment(0), "payments-1/" + segment(0))
    make(tmp_path / "a", offsets(5, 0))
    make(tmp_path / "b", offsets(5, 0))
    make(tmp_path / "mixed", offsets(0, 0), "orders-0/" + segment(0))
    with pytest.raises(BadSource, match=reason):
        find_logs([f"{tmp_path}/{path}"])


def test_another_topic_is_read_if_it_is_named(tmp_path: Path) -> None:
    make(tmp_path, "orders-4/" + segment(0))
    assert names(find_logs([str(tmp_path / "orders-4")], "orders")) == [(4, ["00"])]


def test_a_store_that_nobody_knows_is_told() -> None:
    with pytest.raises(BadSource, match="no store of this kind can be read"):
        locate("gopher://host/path")


def test_directories_of_unknown_partitions_are_logs_of_their_own(tmp_path: Path) -> None:
    make(tmp_path, "one/" + segment(0), "two/" + segment(0))
    logs = find_logs([str(tmp_path / "one"), str(tmp_path / "two")])
    assert [(log.number, log.partition) for log in logs] == [(0, -1), (1, -1)]


@pytest.mark.parametrize("shares", [1, 2, 7, 50, None])
def test_shares_hold_every_byte_once_and_in_order(shares: int | None) -> None:
    for golden in GOLDEN:
        logs = find_logs([str(golden.path)])
        shared = share_out(logs, shares)
        assert shares is None or len(shared) <= shares
        covered: dict[str, list[tuple[int, int]]] = {}
        order = []
        for share in shared:
            for stretch in share:
                covered.setdefault(stretch.segment.path, []).append((stretch.start, stretch.end))
                order.append((stretch.log, stretch.segment.base_offset, stretch.start))
        assert order == sorted(order)
        for log in logs:
            for one in log.segments:
                bounds = covered.get(one.path, [])
                assert [start for start, _ in bounds] == [0, *(end for _, end in bounds)][: len(bounds)]
                assert (bounds[-1][1] if bounds else 0) == one.size


def log_of(*sizes: int, partition: int = 0) -> Log:
    return Log(
        partition, partition, tuple(Segment(LOCAL, f"/x/{segment(n)}", size, False) for n, size in enumerate(sizes))
    )


def test_shares_are_of_equal_size() -> None:
    """Small segments come together, large ones are cut."""
    logs = [log_of(*[1000] * 90), log_of(910_000, partition=1)]
    for shares in (2, 7, 50):
        sizes = [sum(stretch.end - stretch.start for stretch in share) for share in share_out(logs, shares)]
        assert len(sizes) == shares
        assert max(sizes) - min(sizes) <= 1


def test_a_large_log_is_shared_out_by_bytes_and_a_small_one_is_not() -> None:
    gigabytes = share_out([log_of(*[100 << 20] * 100)])
    assert 20 <= len(gigabytes) < 20 + (os.cpu_count() or 1)
    assert len(share_out([log_of(1 << 20, 2 << 20)])) == 1
    cores = os.cpu_count() or 1
    assert all(len(share_out([log_of((128 * cores + odd) << 20)])) % cores == 0 for odd in (1, 77, 128, 300))
    assert share_out([]) == [[]]
    assert share_out([log_of(0)]) == [[]]


def test_old_segments_are_left_out() -> None:
    log = Log(0, 3, tuple(Segment(LOCAL, f"/x/{segment(base)}", 5, False) for base in (10, 20, 30)))
    for offset, kept in ((0, [10, 20, 30]), (19, [10, 20, 30]), (20, [20, 30]), (31, [30])):
        (rest,) = newer([log], {3: offset})
        assert [one.base_offset for one in rest.segments] == kept
    assert newer([log], {4: 99}) == [log]


def test_a_gap_behind_what_was_kept_is_told() -> None:
    log = Log(0, 3, (Segment(LOCAL, f"/x/{segment(10)}", 5, False),))
    with pytest.raises(BadSource, match="begins at offset 10, what was kept ends before 7"):
        newer([log], {3: 7})
