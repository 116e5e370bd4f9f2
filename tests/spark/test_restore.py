"""`kohort restore`: the right offsets for a time, a file that Kafka reads, and back into a running broker."""

import csv
import pty
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from kohort.cli.pipeline import pipeline
from kohort.cli.restore import restore
from kohort.clock import parse_moment
from kohort.errors import KohortError
from kohort.spark.pipeline import TABLES
from kohort.spark.restore import NothingToRestore, offsets_as_of, plan_from
from tests.broker.data_plane import DELETE_RECORDS, batch, make_topic, now_ms, produce_all
from tests.broker.group_clients import OFFSET_COMMIT, commit, find_coordinator, leave, settle
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient
from tests.spark.golden_tables import batches_of, state_of
from tests.spark.runs import all_golden_logs, rows_in

OFFSET_FETCH, OFFSET_DELETE = 9, 47

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    'a,b"c',
    "+1",
    "nul\0and\ttab",
    "группа-消费者组-🦊",
    "x" * 32_000,
]
UNWRITABLE = "two\nlines"


def test_offsets_as_of_any_time_are_what_kohort_state_says(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Over the logs of all golden sets, at times from each of them, with their tombstones and transactions."""
    logs = all_golden_logs(tmp_path_factory.mktemp("logs"))
    commits, records = (
        spark.read.format("kohort").option("table", table).load(str(logs)).cache()
        for table in ("offset_commits", "records")
    )
    paths = [sorted(place.glob("*.log")) for place in logs.iterdir()]
    times = sorted({batch.header.max_timestamp for segments in paths for batch in batches_of(segments)})
    for moment in (times[0] - 1, *times[:: len(times) // 6], times[-1]):
        rows = offsets_as_of(commits, records, moment).collect()
        found = {(row.group, row.topic, row.topic_partition): (row.committed_offset, row.metadata) for row in rows}
        assert len(found) == len(rows)
        state = state_of(logs, as_of=moment)
        assert found == {key: (told.value.offset, told.value.metadata) for key, told in state.offsets.items()}
    for table in (commits, records):
        table.unpersist()


class Scene(NamedTuple):
    """A broker with a past, and the tables of its log."""

    broker: Running
    client: WireClient
    tables: Path
    then: int
    told: str
    """What the command that made the tables printed."""


def next_millisecond() -> int:
    """Wait until the clock has moved on; the time before that."""
    then = now_ms()
    while now_ms() == then:
        pass
    return then


def commit_with(client: WireClient, group: str, offset: int, metadata: str) -> None:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}
    topics = [{"name": "orders", "partitions": [partition]}]
    nobody = {"generation_id_or_member_epoch": -1, "member_id": ""}
    answer = client.ask(OFFSET_COMMIT, 5, group_id=group, topics=topics, **nobody)
    assert answer.topics[0].partitions[0].error_code == 0


def offsets_of(client: WireClient, group: str) -> dict[int, tuple[int, str]]:
    answer = client.ask(OFFSET_FETCH, 5, group_id=group, topics=None)
    assert answer.error_code == 0
    return {
        told.partition_index: (told.committed_offset, told.metadata)
        for topic in answer.topics
        for told in topic.partitions
    }


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Groups commit, time goes by, they commit again; then the tables are made while the broker runs."""
    assert SparkSession.getActiveSession() is spark  # and so the command takes it
    data, tables = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("tables") / "out"
    with running(data, {"offsets.topic.num.partitions": "3"}) as broker:
        client = broker.client()
        make_topic(broker, "orders", 2)
        for _ in range(2):
            produced = produce_all(client, batch(*"abcde"), batch(*"abcde"), topic="orders")
            assert [part.error_code for part in produced] == [0, 0]
            next_millisecond()
        find_coordinator(client, "kitchen")
        commit_with(client, "kitchen", 3, "soup first")
        assert commit(client, "kitchen", "orders", {1: 4}) == 0
        for group in (*HOSTILE, UNWRITABLE):
            assert commit(client, group, "orders", {0: 2}) == 0
        then = next_millisecond()
        commit_with(client, "kitchen", 7, "dessert")
        gone = [{"name": "orders", "partitions": [{"partition_index": 1}]}]
        assert client.ask(OFFSET_DELETE, 0, group_id="kitchen", topics=gone).error_code == 0
        assert commit(client, "newcomer", "orders", {0: 1}) == 0
        made = CliRunner().invoke(pipeline, [str(data), "--out", str(tables)])
        assert made.exit_code == 0, made.output
        yield Scene(broker, client, tables, then, made.stdout)
        client.close()


def run_restore(scene: Scene, *arguments: str, cluster: bool = True, **more: Any) -> Result:
    given = ["--bootstrap", scene.broker.address] if cluster else []
    return CliRunner().invoke(restore, [str(scene.tables), "--as-of", str(scene.then), *given, *arguments], **more)


def test_a_run_ends_with_a_summary(scene: Scene) -> None:
    lines = scene.told.splitlines()
    assert lines[0].split() == ["TABLE", "ROWS", "SECONDS"]
    assert [line.split()[0] for line in lines[1 : len(TABLES) + 1]] == list(TABLES)
    records = len(rows_in(scene.tables, "records"))
    assert lines[len(TABLES) + 2] == f"{records} records read = {records} in records + 0 in quarantine"
    assert lines[-1].endswith(f"written to {scene.tables}")


def test_data_segments_beside_the_offsets_topic_give_the_lag(scene: Scene) -> None:
    lags = {(row["group"], row["topic_partition"]): row for row in rows_in(scene.tables, "lag")}
    assert set(lags) == {("kitchen", 0), ("newcomer", 0), *((group, 0) for group in (*HOSTILE, UNWRITABLE))}
    row = lags["kitchen", 0]
    assert (row["start_offset"], row["end_offset"], row["lag"]) == (0, 10, 3)
    assert row["source"] in ("end_offsets", "topic_times")
    assert row["time_method"] in ("sample", "interpolated")
    assert 0 <= row["lag_seconds_min"] <= row["lag_seconds"] <= row["lag_seconds_max"] < 60


def test_hostile_names_are_the_same_in_every_table(scene: Scene) -> None:
    for table in ("records", "offset_commits", "current_offsets", "lag", "lag_status", "expiry", "topic_health"):
        assert {row["group"] for row in rows_in(scene.tables, table)} >= {*HOSTILE, UNWRITABLE}, table


def test_a_plan_of_one_group_has_no_group_and_one_of_several_has(scene: Scene, tmp_path: Path) -> None:
    one = run_restore(scene, "--group", "kitchen", cluster=False)
    assert (one.exit_code, one.stdout, one.stderr) == (0, "orders,0,3\norders,1,4\n", "")
    path = tmp_path / "plan.csv"
    wanted = [argument for group in HOSTILE for argument in ("--group", group)]
    several = run_restore(scene, *wanted, "--out", str(path), cluster=False)
    assert (several.exit_code, several.stdout) == (0, "")
    assert "would take the names of these groups for formulas: +1, =cmd|' /C calc'!A0" in several.stderr
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[group, "orders", "0", "2"] for group in sorted(HOSTILE)]
    assert path.read_text(encoding="utf-8").count("\n") == len(HOSTILE)


def test_a_name_that_no_line_can_hold_is_left_out_and_told(scene: Scene) -> None:
    done = run_restore(scene, cluster=False)
    assert isinstance(done.exception, KohortError)
    assert str(done.exception).endswith(": two\\nlines")
    assert "lines" not in done.stdout
    assert "kitchen,orders,0,3\n" in done.stdout


def test_names_that_would_move_a_terminal_are_not_sent_to_one(scene: Scene) -> None:
    ours, theirs = pty.openpty()
    with (
        open(ours, "rb"),
        open(theirs, "w", encoding="utf-8") as terminal,
        redirect_stdout(terminal),
        pytest.raises(KohortError, match="names that would move a terminal: --out FILE takes them"),
    ):
        restore.main([str(scene.tables), "--as-of", str(scene.then)], standalone_mode=False)


def test_groups_without_an_offset_at_that_time_are_refused(spark: SparkSession, scene: Scene) -> None:
    with pytest.raises(NothingToRestore, match="of the group 'newcomer'"):
        plan_from(spark, scene.tables, scene.then, ["kitchen", "newcomer"])
    with pytest.raises(NothingToRestore, match="no offset of any group as of 2001-09-09T01:46:40"):
        plan_from(spark, scene.tables, 1_000_000_000_000)


def test_what_is_planned_is_set_and_read_back(scene: Scene) -> None:
    """The deleted offset is there again, with the text that was left with it; another group's stays as it is."""
    newcomer = offsets_of(scene.client, "newcomer")
    done = run_restore(scene, "--group", "kitchen", "--group", UNWRITABLE, "--group", "x" * 32_000, "--apply", "--yes")
    assert done.exit_code == 0, done.output
    assert "4 of 4 offsets set and read back" in done.stderr
    assert offsets_of(scene.client, "kitchen") == {0: (3, "soup first"), 1: (4, "")}
    assert offsets_of(scene.client, UNWRITABLE) == {0: (2, "")}
    assert offsets_of(scene.client, "newcomer") == newcomer


def test_nothing_is_set_unless_somebody_says_yes(scene: Scene) -> None:
    commit_with(scene.client, "kitchen", 6, "")
    before = offsets_of(scene.client, "kitchen")
    done = run_restore(scene, "--group", "kitchen", "--apply", input="n\n")
    assert (done.exit_code, "Set 2 offsets of 1 groups?" in done.stderr) == (1, True)
    assert "6    3     3       0      10   changed" in done.stderr
    assert offsets_of(scene.client, "kitchen") == before


def test_a_group_with_members_is_refused(scene: Scene) -> None:
    joined = settle(scene.client, "+1", "orders", 0)
    done = run_restore(scene, "--group", "kitchen", "--group", "+1", "--apply", "--yes")
    assert isinstance(done.exception, KohortError)
    assert str(done.exception) == "nothing is set: stop the consumers of these groups first: +1 (Stable, 1 members)"
    leave(scene.client, "+1", joined)


def test_offsets_outside_of_the_log_are_told_and_clamped_only_if_asked(scene: Scene) -> None:
    gone = [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 5}]}]
    (told,) = scene.client.ask(DELETE_RECORDS, 1, topics=gone, timeout=1000).topics[0].partitions
    assert (told.error_code, told.low_watermark) == (0, 5)
    shown = run_restore(scene, "--group", "kitchen")
    assert shown.stdout == "orders,0,3\norders,1,4\n"
    assert "1 before the log's start" in shown.stderr
    assert "auto.offset.reset" in shown.stderr
    clamped = run_restore(scene, "--group", "kitchen", "--clamp", "--apply", "--yes")
    assert clamped.exit_code == 0, clamped.output
    assert offsets_of(scene.client, "kitchen") == {0: (5, "soup first"), 1: (4, "")}


def test_a_topic_that_the_cluster_lacks_is_told_and_passed_over(scene: Scene, tmp_path: Path) -> None:
    with running(tmp_path) as other:
        make_topic(other, "orders", 1)
        client = other.client()
        find_coordinator(client, "kitchen")
        arguments = [str(scene.tables), "--as-of", str(scene.then), "--group", "kitchen", "--bootstrap", other.address]
        done = CliRunner().invoke(restore, [*arguments, "--clamp", "--apply", "--yes"])
        assert str(done.exception) == "1 offsets not set: of no topic partition there"
        assert offsets_of(client, "kitchen") == {0: (0, "soup first")}
        client.close()


def test_a_cluster_that_is_not_there_is_told(scene: Scene) -> None:
    arguments = [str(scene.tables), "--as-of", str(scene.then), "--bootstrap", "127.0.0.1:1"]
    done = CliRunner().invoke(restore, arguments)
    assert str(done.exception) == "127.0.0.1:1: cannot connect; expected HOST:PORT of a running broker"


def test_a_time_behind_the_tables_is_warned_of(scene: Scene) -> None:
    arguments = [str(scene.tables), "--as-of", "2999-01-01", "--group", "newcomer"]
    done = CliRunner().invoke(restore, arguments)
    assert done.stdout == "orders,0,1\n"
    assert "warning: the tables reach to" in done.stderr


@pytest.mark.parametrize("time", ["9" * 18, "0001-01-01T00:00+23:59"])
def test_a_time_outside_of_the_calendar_is_a_time(scene: Scene, time: str) -> None:
    done = CliRunner().invoke(restore, [str(scene.tables), "--as-of", time, "--group", "newcomer"])
    if time.startswith("9"):
        assert (done.exit_code, done.stdout) == (0, "orders,0,1\n")
    else:
        assert isinstance(done.exception, NothingToRestore)
    missing = CliRunner().invoke(restore, [str(scene.tables), "--as-of", time, "--group", "nobody"])
    assert str(missing.exception).endswith(f"no offset as of {parse_moment(time)} ms of the group 'nobody'")
