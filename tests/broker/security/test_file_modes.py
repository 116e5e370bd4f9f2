"""What the broker writes is its owner's alone, whatever the umask."""

import os
import signal
import stat
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.broker.data_plane import TOPIC, batch, produce
from tests.broker.group_clients import commit, find_coordinator
from tests.broker.quotas.quota_requests import alter, entity
from tests.broker.wire_client import WireClient

CREATE_TOPICS, INCREMENTAL_ALTER_CONFIGS, INIT_PRODUCER_ID = 19, 44, 22


def serve(data: Path, umask: int) -> tuple["Popen[str]", int]:
    command = [sys.executable, "-m", "kohort.cli.main", "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    process = Popen(command, stdout=PIPE, stderr=PIPE, text=True, umask=umask)
    assert process.stdout is not None
    ready = process.stdout.readline()
    return process, int(ready.split("kafka=")[1].split()[0].rpartition(":")[2])


def end(process: "Popen[str]") -> str:
    """What it said on stderr."""
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    return told


def wide_open(root: Path) -> list[str]:
    """Whatever others could look into."""
    found = [root, *root.rglob("*")]
    return [
        f"{path.relative_to(root)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in found
        if stat.S_IMODE(path.lstat().st_mode) != (0o700 if path.is_dir() else 0o600)
    ]


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_files_are_0600_and_directories_0700(tmp_path: Path, umask: int) -> None:
    data = tmp_path / "data"
    process, port = serve(data, umask)
    with WireClient(port) as client:
        client.ask(CREATE_TOPICS, 4, topics=[{"name": TOPIC, "num_partitions": 2, "replication_factor": 1}])
        assert produce(client, batch("a")).error_code == 0
        client.ask(INIT_PRODUCER_ID, 1, transactional_id=None, transaction_timeout=1000)
        find_coordinator(client, "g")
        assert commit(client, "g", TOPIC, {0: 1}) == 0
        alter(client, entity(user="alice"), producer_byte_rate=1)
        setting = {"name": "log.cleaner.backoff.ms", "config_operation": 0, "value": "1000"}
        resource = {"resource_type": 4, "resource_name": "0", "configs": [setting]}
        (changed,) = client.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False).responses
        assert changed.error_code == 0
        assert wide_open(data) == []  # while it runs: journals, locks
    assert end(process) == ""
    written = {path.name for path in data.rglob("*")}
    assert {"topics.json", "settings.json", ".lock", "00000000000000000000.log"} <= written
    assert wide_open(data) == []
    process, _ = serve(data, umask)  # what is written anew at a start
    end(process)
    assert wide_open(data) == []


@pytest.mark.parametrize(("mode", "is_told"), [(0o755, True), (0o750, True), (0o700, False)])
def test_a_directory_that_others_can_enter_is_told_of(tmp_path: Path, mode: int, is_told: bool) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chmod(data, mode)
    process, _ = serve(data, 0o022)
    told = end(process)
    assert stat.S_IMODE(data.stat().st_mode) == mode  # it is somebody's choice
    if is_told:
        assert told.count("\n") == 1
        assert f"can be entered by others (mode {mode:04o}): chmod 700" in told
    else:
        assert told == ""
