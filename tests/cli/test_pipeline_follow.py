"""`kohort pipeline --follow` as people type it: a cluster followed until Ctrl-C."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kohort.testing import Broker
from tests.cli.conftest import Run
from tests.slow import slow
from tests.spark.live_broker import SETTINGS, TOPIC, commit
from tests.spark.runs import rows_in

KOHORT = Path(sys.executable).parent / "kohort"
PATIENCE_S = 300.0


@slow
@pytest.mark.xdist_group("spark")
def test_ctrl_c_ends_well_and_leaves_whole_tables(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Broker(tmp_path / "data", settings=SETTINGS) as broker:
        broker.create_topic(TOPIC, 2)
        commit(broker.bootstrap_servers, "steady", 1)
        command = [KOHORT, "pipeline", f"kafka://{broker.bootstrap_servers}", "--out", out, "--follow"]
        more = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
        with subprocess.Popen([*command, *more], stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            timer = threading.Timer(PATIENCE_S, running.kill)
            timer.start()
            said = []
            for line in running.stderr:
                said.append(line)
                if line.startswith("kohort: offset_jumps"):  # the run has read the log: what comes now, the stream sees
                    commit(broker.bootstrap_servers, "steady", 2)
                if "in the tables after" in line:
                    running.send_signal(signal.SIGINT)
                    break
            said += running.stderr.readlines()
            running.wait()
            timer.cancel()
    assert running.returncode == 0, said
    assert "Traceback" not in "".join(said)
    assert [row["committed_offset"] for row in rows_in(out, "current_offsets")] == [2]
    told = json.loads((out / "kohort.json").read_text())
    assert told["tables"]["records"]["rows"] == len(rows_in(out, "records")) == 2
    assert not (out / ".kohort").exists()


def test_what_cannot_be_followed_is_told_before_spark_starts(kohort: Run, tmp_path: Path) -> None:
    done = kohort("pipeline", "kafka://127.0.0.1:1", "--out", tmp_path / "out", "--follow")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "kafka://127.0.0.1:1: cannot connect" in done.stderr
