"""What segments of data topics tell: where a topic partition ends, and when its records came. No Spark is needed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kohort.spark.data_segments import Ends, find_ends
from kohort.spark.inputs import OFFSETS_TOPIC
from tests.broker.data_plane import DELETE_RECORDS, make_topic, produce
from tests.broker.running import running
from tests.log import log_bench

HEARD = 1_700_000_009_000
START = 1_700_000_000_000
ROUNDS = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a broker that has ended: a topic of several segments, an empty one, and one cut at its start."""
    directory = tmp_path_factory.mktemp("data")
    settings = {"log.index.interval.bytes": "200", "log.message.timestamp.before.max.ms": str(1 << 62)}
    with running(directory, settings) as broker:
        client = broker.client()
        make_topic(broker, "orders", segment_bytes="4096", retention_ms="-1")
        make_topic(broker, "empty", 2)
        make_topic(broker, "cut", retention_ms="-1")
        for number in range(ROUNDS):
            batch = log_bench.batch(*("x" * 100 for _ in range(3)), time=START + 1000 * number)
            assert produce(client, batch, topic="orders").error_code == 0
        assert produce(client, log_bench.batch(*"abcde", time=START), topic="cut").error_code == 0
        gone = [{"name": "cut", "partitions": [{"partition_index": 0, "offset": 2}]}]
        assert client.ask(DELETE_RECORDS, 1, topics=gone, timeout=1000).topics[0].partitions[0].error_code == 0
        client.close()
    return directory


def rows_of(found: Ends | None) -> tuple[dict[tuple[str, int], tuple[Any, ...]], dict[str, list[tuple[int, int]]]]:
    assert found is not None
    ends = {
        (row["topic"], row["topic_partition"]): (row["start_offset"], row["end_offset"], millis(row["at"]))
        for row in found.end_offsets.to_pylist()
    }
    times: dict[str, list[tuple[int, int]]] = {}
    for row in found.topic_times.to_pylist():
        times.setdefault(row["topic"], []).append((row["offset"], millis(row["timestamp"])))
    return ends, times


def millis(at: datetime) -> int:
    return round(at.astimezone(UTC).timestamp() * 1000)


LAST = START + 1000 * (ROUNDS - 1)


def test_ends_starts_and_times_are_those_of_the_broker(data: Path) -> None:
    assert len(list((data / "orders-0").glob("*.log"))) > 2
    found = find_ends(str(data), OFFSETS_TOPIC, HEARD)
    ends, times = rows_of(found)
    assert ends == {
        ("orders", 0): (0, 3 * ROUNDS, LAST),
        ("empty", 0): (0, 0, HEARD),
        ("empty", 1): (0, 0, HEARD),
        ("cut", 0): (2, 5, START),
    }
    assert found is not None
    assert found.last_time == max(LAST, HEARD)
    assert len(times["orders"]) > 10
    for offset, time in times["orders"]:
        assert time == START + 1000 * (offset // 3)
    assert times["orders"] == sorted(times["orders"])


@pytest.mark.parametrize("spoiled", ["missing", "zeros", "filled up"])
def test_indexes_of_a_dead_broker_are_done_without(data: Path, tmp_path: Path, spoiled: str) -> None:
    place = tmp_path / "orders-0"
    place.mkdir()
    for path in (data / "orders-0").iterdir():
        kept = path.read_bytes()
        if path.suffix in (".index", ".timeindex"):
            if spoiled == "missing":
                continue
            kept = bytes(len(kept) + 120) if spoiled == "zeros" else kept + bytes(1200)
        (place / path.name).write_bytes(kept)
    ends, times = rows_of(find_ends(str(tmp_path), OFFSETS_TOPIC, HEARD))
    assert ends == {("orders", 0): (0, 3 * ROUNDS, LAST)}
    for offset, time in times["orders"]:
        assert time == START + 1000 * (offset // 3)


def test_a_batch_that_is_cut_off_does_not_count(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "orders-0"
    place.mkdir()
    last = max((data / "orders-0").glob("*.log"))
    (place / last.name).write_bytes(last.read_bytes()[:-1])
    ends, _ = rows_of(find_ends(str(tmp_path), OFFSETS_TOPIC, HEARD))
    assert ends["orders", 0] == (int(last.stem), 3 * ROUNDS - 3, LAST - 1000)


def test_times_that_no_table_can_hold_are_left_out(tmp_path: Path) -> None:
    place = tmp_path / "odd-0"
    place.mkdir()
    (place / f"{0:020d}.log").write_bytes(log_bench.batch("x", time=1 << 60))
    ends, times = rows_of(find_ends(str(tmp_path), OFFSETS_TOPIC, HEARD))
    assert ends == {("odd", 0): (0, 1, HEARD)}
    assert times == {}


def test_a_source_without_data_topics_tells_nothing(data: Path, tmp_path: Path) -> None:
    (tmp_path / f"{OFFSETS_TOPIC}-0").mkdir()
    (tmp_path / "__transaction_state-0").mkdir()
    assert find_ends(str(tmp_path), OFFSETS_TOPIC, HEARD) is None
    segment = next((data / "orders-0").glob("*.log"))
    assert find_ends(str(segment), OFFSETS_TOPIC, HEARD) is None
    assert find_ends("kafka://127.0.0.1:9092", OFFSETS_TOPIC, HEARD) is None


def test_a_broker_that_runs_has_its_time_index_in_memory_and_the_batches_stand_in(tmp_path: Path) -> None:
    with running(tmp_path, {"log.message.timestamp.before.max.ms": str(1 << 62)}) as broker:
        client = broker.client()
        make_topic(broker, "orders", retention_ms="-1")
        for number in range(ROUNDS):
            batch = log_bench.batch("a", "b", time=START + 1000 * number)
            assert produce(client, batch, topic="orders").error_code == 0
        _, times = rows_of(find_ends(str(tmp_path), OFFSETS_TOPIC, HEARD))
        client.close()
    assert [time for _, time in times["orders"]] == [START + 1000 * number for number in range(ROUNDS)]
    assert {offset - 2 * number for number, (offset, _) in enumerate(times["orders"])} <= {0, 1}
