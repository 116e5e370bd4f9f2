"""Requests in every version: what old and new brokers tell of the same groups is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.admin import cluster as cluster_module
from kohort.admin import groups as groups_module
from kohort.admin import messages
from kohort.admin import offsets as offsets_module
from kohort.admin.cluster import Cluster
from kohort.admin.groups import delete_groups, describe_groups, list_groups
from kohort.admin.lag import lag_of
from kohort.admin.messages import Answer, Api, BadMessage, NotSpoken
from kohort.admin.offsets import Offset, commit, committed_offsets, delete_offsets, log_offsets
from kohort.testing import Broker
from tests.cli.group_scenes import TOPIC, member, told_broker
from tests.cli.group_scenes import commit as commit_by_client

APIS = {name: api for name, api in vars(messages).items() if isinstance(api, Api)}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with told_broker() as broker:
        commit_by_client(broker, "billing", {0: 10, 1: 3})
        with member(broker, "readers", "reader-1"):
            yield broker


def speak_only(monkeypatch: pytest.MonkeyPatch, api: str, version: int) -> None:
    for module in (cluster_module, groups_module, offsets_module):
        if hasattr(module, api):
            monkeypatch.setattr(module, api, APIS[api]._replace(first=version, last=version))


@pytest.mark.parametrize(
    ("api", "version"),
    [
        (name, version)
        for name, api in APIS.items()
        if name != "CONSUMER_GROUP_DESCRIBE"
        for version in range(api.first, api.last + 1)
    ],
)
def test_all_versions_say_the_same(broker: Broker, monkeypatch: pytest.MonkeyPatch, api: str, version: int) -> None:
    speak_only(monkeypatch, api, version)
    with Cluster(broker.bootstrap_servers) as cluster:
        listed = [(group.group, group.state, group.type) for group in list_groups(cluster)]
        assert listed == [("billing", "Empty", "Classic"), ("readers", "Stable", "Classic")]
        described = describe_groups(cluster, ["billing", "readers", "nobody"])
        assert [group.state for group in described.values()] == ["Empty", "Stable", "Dead"]
        (only,) = described["readers"].members
        assert (only.client_id, only.subscription) == ("reader-1", (TOPIC,))
        assert only.assignment == ((TOPIC, 0), (TOPIC, 1), (TOPIC, 2))
        rows = lag_of(cluster, {"billing": described["billing"]})["billing"]
        assert [row.lag for row in rows] == [20, 4]
        assert log_offsets(cluster, [(TOPIC, 1)], 0).found == {(TOPIC, 1): 0}
        assert commit(cluster, {"other": {(TOPIC, 0): Offset(5, metadata="x")}}) == {}
        assert committed_offsets(cluster, ["other"])["other"][TOPIC, 0][::2] == (5, "x")
        assert delete_offsets(cluster, "other", [(TOPIC, 0)]) == {}
        assert commit(cluster, {"other": {(TOPIC, 0): Offset(5)}}) == {}
        assert delete_groups(cluster, ["other"]) == {"other": None}


def test_a_request_that_the_broker_does_not_know_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    speak_only(monkeypatch, "LIST_GROUPS", 99)
    with Cluster(broker.bootstrap_servers) as cluster, pytest.raises(NotSpoken, match="does not take ListGroups"):
        list_groups(cluster)


def test_a_name_that_no_request_can_hold_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(broker.bootstrap_servers) as cluster:
        with pytest.raises(cluster_module.ClusterFailed, match="has closed the connection"):
            describe_groups(cluster, ["x" * 40_000])
        assert list_groups(cluster)
    speak_only(monkeypatch, "FIND_COORDINATOR", 2)
    with Cluster(broker.bootstrap_servers) as cluster:
        with pytest.raises(BadMessage, match="FindCoordinator cannot hold"):
            describe_groups(cluster, ["x" * 40_000])
        assert list_groups(cluster)


def test_an_answer_that_cannot_be_read_is_told() -> None:
    with pytest.raises(BadMessage, match="the answer to ListGroups, version 5, cannot be read"):
        Answer(APIS["LIST_GROUPS"], 5, b"\0\0\0\0\0\0\0\x7f").read()


def test_a_broker_that_goes_away_is_told_in_one_line(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker, Cluster(broker.bootstrap_servers, patience_s=1) as cluster:
        broker.stop()
        with pytest.raises(cluster_module.ClusterFailed, match="does not answer"):
            list_groups(cluster)
        broker.start()
