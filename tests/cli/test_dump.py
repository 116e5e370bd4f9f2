"""`kohort dump`."""

import csv
import io
import json
from pathlib import Path

from kohort.records.batch import Record, RecordBatch, read_batches
from kohort.records.offsets_topic import OffsetCommitValue, OffsetKey, encode_key, encode_value
from kohort.records.rows import ROW_KEYS
from tests.cli.conftest import Run
from tests.golden_sets import ROOT

GOLDEN = ROOT / "kafka-2.6.3-ibp-2.6"
SEGMENT = GOLDEN / "__consumer_offsets-0" / "00000000000000000000.log"


def commit(offset: int, group: str, metadata: str = "", timestamp: int = 0) -> bytes:
    key, value = OffsetKey(group, "t", 0), OffsetCommitValue(offset, metadata, timestamp)
    return RecordBatch.build(
        [Record(offset, timestamp, encode_key(key), encode_value(value))], base_sequence=0
    ).encode()


def test_json_lines_have_the_promised_keys(kohort: Run) -> None:
    done = kohort("dump", GOLDEN, "--format", "jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 157
    always = set(ROW_KEYS[:11])
    by_kind = {
        "offset_commit": "group topic topic_partition committed_offset leader_epoch metadata commit_timestamp"
        " expire_timestamp",
        "group_metadata": "group protocol_type generation protocol leader state_timestamp members",
        "control": "control_type coordinator_epoch",
    }
    for row in rows:
        wanted = set(by_kind[row["kind"]].split()) if not row["tombstone"] else {"group"}
        assert always | wanted <= row.keys()


def test_a_file_a_partition_and_a_log_directory_are_all_sources(kohort: Run) -> None:
    whole = kohort("dump", GOLDEN, "--format", "jsonl").stdout.splitlines()
    partition = kohort("dump", SEGMENT.parent, "--format", "jsonl").stdout.splitlines()
    file = kohort("dump", SEGMENT, "--format", "jsonl").stdout.splitlines()
    assert file == partition == [line for line in whole if json.loads(line)["partition"] == 0]


def test_csv_has_a_line_for_each_record(kohort: Run) -> None:
    done = kohort("dump", GOLDEN, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 157
    assert tuple(rows[0]) == ROW_KEYS


def test_records_are_chosen_by_group_and_time(kohort: Run) -> None:
    rows = [json.loads(line) for line in kohort("dump", GOLDEN, "--format", "jsonl").stdout.splitlines()]
    middle = sorted(row["timestamp"] for row in rows)[len(rows) // 2]
    late = kohort("dump", GOLDEN, "--format", "jsonl", "--from-time", str(middle)).stdout.splitlines()
    early = kohort("dump", GOLDEN, "--format", "jsonl", "--to-time", str(middle - 1)).stdout.splitlines()
    assert sorted([*early, *late]) == sorted(map(json.dumps, rows))
    group = kohort("dump", GOLDEN, "--format", "jsonl", "--group", "k26.g-simple").stdout.splitlines()
    assert {json.loads(line)["group"] for line in group} == {"k26.g-simple"}


def test_a_damaged_file_gives_what_is_good_and_one_line_on_what_is_not(kohort: Run, tmp_path: Path) -> None:
    data = bytearray(SEGMENT.read_bytes())
    hurt = list(read_batches(bytes(data)))[3].header
    data[hurt.position + 70] ^= 1
    path = tmp_path / "damaged.log"
    path.write_bytes(data)
    done = kohort("dump", path, "--format", "jsonl")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 30 - hurt.record_count
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"kohort: damaged: {path}, byte {hurt.position}: checksum is ")


def test_a_file_cut_short_gives_the_batches_before_the_cut(kohort: Run, tmp_path: Path) -> None:
    path = tmp_path / "short.log"
    path.write_bytes(SEGMENT.read_bytes()[:400])
    done = kohort("dump", path, "--format", "jsonl")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 4)
    assert done.stderr == f"kohort: damaged: {path}, byte 351: a batch of 153 bytes is cut off after 49\n"


def test_a_hostile_group_id_cannot_reach_the_terminal_or_the_spreadsheet(kohort: Run, tmp_path: Path) -> None:
    names = ['"><script>', "../../x", "nul\0", "\x1b[2J", "‮gpj", "=cmd()", "two\nlines", "x" * 32_000, "🦊"]
    path = tmp_path / "hostile.log"
    path.write_bytes(b"".join(commit(n, name, metadata=name) for n, name in enumerate(names)))
    table = kohort("dump", path).stdout
    assert len(table.splitlines()) == len(names) + 1
    assert not any(ord(character) < 32 and character != "\n" for character in table)
    assert "‮" not in table
    assert max(map(len, table.splitlines())) < 1_200
    lines = kohort("dump", path, "--format", "jsonl").stdout
    assert [json.loads(line)["group"] for line in lines.splitlines()] == names
    assert lines.isascii()
    cells = [row["group"] for row in csv.DictReader(io.StringIO(kohort("dump", path, "--format", "csv").stdout))]
    assert cells[5] == "'=cmd()"
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_bad_input_is_one_line_that_says_what_was_expected(kohort: Run, tmp_path: Path) -> None:
    empty_file = tmp_path / "empty.log"
    empty_file.touch()
    text_file = tmp_path / "notes.txt"
    text_file.write_text("these are not the bytes you are looking for, by far")
    empty_directory = tmp_path / "nothing"
    empty_directory.mkdir()
    for source in (tmp_path / "missing", empty_file, text_file, empty_directory):
        for command in ("dump", "state"):
            done = kohort(command, source)
            assert (done.returncode, done.stdout) == (1, "")
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"kohort: {source}: ")
            assert "expected a segment file" in line


def test_several_topics_are_chosen_from(kohort: Run, tmp_path: Path) -> None:
    for topic in ("__consumer_offsets-0", "elsewhere-3"):
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "00000000000000000000.log").write_bytes(commit(0, topic))
    rows = kohort("dump", tmp_path, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(row)["group"] for row in rows] == ["__consumer_offsets-0"]
    rows = kohort("dump", tmp_path, "--topic", "elsewhere", "--format", "jsonl").stdout.splitlines()
    assert [(json.loads(row)["group"], json.loads(row)["partition"]) for row in rows] == [("elsewhere-3", 3)]
    done = kohort("dump", tmp_path, "--topic", "absent")
    assert done.returncode == 1
    assert "it holds the topics __consumer_offsets, elsewhere; choose one by --topic" in done.stderr


def test_wrong_usage_is_exit_code_2(kohort: Run) -> None:
    assert kohort("dump").returncode == 2
    assert kohort("dump", GOLDEN, "--format", "xml").returncode == 2
    done = kohort("state", GOLDEN, "--as-of", "yesterday")
    assert done.returncode == 2
    assert "neither ISO 8601" in done.stderr


def test_what_the_system_refuses_is_one_line_too(kohort: Run, tmp_path: Path) -> None:
    partition = tmp_path / "__consumer_offsets-0"
    partition.mkdir()
    (partition / "00000000000000000000.log").symlink_to(tmp_path / "nowhere")
    for command in ("dump", "state"):
        done = kohort(command, tmp_path)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "No such file or directory" in line


def test_times_are_iso_or_milliseconds_and_never_guessed(kohort: Run) -> None:
    assert kohort("dump", GOLDEN, "--from-time", "20261116T0312").returncode == 0
    for time in ("2026", "1794786180", "-5", "²"):
        done = kohort("dump", GOLDEN, f"--from-time={time}")
        assert done.returncode == 2
        assert "neither ISO 8601" in done.stderr
