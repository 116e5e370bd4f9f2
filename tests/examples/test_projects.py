"""The examples that need no Spark: each is run as a reader would."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kohort.admin.cluster import Cluster
from kohort.admin.groups import describe_groups
from tests.broker.data_plane import TOPIC, make_topic
from tests.broker.group_clients import commit, settle
from tests.broker.http_port import http_of
from tests.broker.running import running
from tests.slow import slow

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
DASHBOARD: dict[str, Any] = json.loads((EXAMPLES / "grafana/kohort.json").read_text())


@slow
def test_the_tests_of_the_pytest_project_pass(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"cache_dir={tmp_path}"]
    done = subprocess.run(
        command, cwd=EXAMPLES / "pytest-project", capture_output=True, text=True, env=_plain_environment()
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def _plain_environment() -> dict[str, str]:
    """Nothing of the pytest that runs this test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


@slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_composition_starts_says_where_to_look_and_stops_as_a_whole(number: signal.Signals) -> None:
    command = [sys.executable, EXAMPLES / "compose/compose.py", "--port", "0", "--http-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(
            r"look at http://\S+/ or type: kohort groups describe --bootstrap (\S+) --group kitchen\n", line
        )
        assert found, line
        with Cluster(found[1]) as cluster:
            while (
                sum(bool(member.assignment) for member in describe_groups(cluster, ["kitchen"])["kitchen"].members) < 3
            ):
                assert process.poll() is None
        started = _children(process.pid)
        assert len(started) == 5
        process.send_signal(number)
        rest, told = process.communicate()
    assert (process.returncode, rest, told) == (0, "", "")
    assert not [child for child in started if Path(f"/proc/{child}").exists()]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_every_metric_of_the_dashboard_is_exported() -> None:
    asked = {
        name
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:kafka|kohort)_[a-z_]+", target["expr"])
    } | set(re.findall(r"label_values\((\w+),", json.dumps(DASHBOARD["templating"])))
    assert len(asked) > 20
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        assert commit(client, "readers", TOPIC, {0: 0}, settle(client, "readers", TOPIC, 0)) == 0
        assert commit(client, "readers", TOPIC, {0: 0}) != 0  # an error to be counted
        assert asked - {name for name, _ in http.metrics()} == set()


def test_the_dashboard_has_what_grafana_needs() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["schemaVersion"]) == ("kohort", 39)
    assert DASHBOARD["title"]
    source, *_ = DASHBOARD["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": f"${{{source['name']}}}"}
        assert panel["type"] in ("stat", "timeseries")
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize("name", ["compose", "grafana", "notebook", "pytest-project"])
def test_each_example_says_what_it_is(name: str) -> None:
    assert (EXAMPLES / name / "README.md").read_text().startswith("# ")
