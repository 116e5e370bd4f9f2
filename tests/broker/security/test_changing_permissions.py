"""Permission counts when something is done: a fetch that began with it ends without, if it was taken away."""

from collections.abc import Iterator
from typing import Any

import pytest

from kohort.broker.security.acl import Operation as Op
from kohort.broker.security.acl import ResourceType as Type
from kohort.errors import ErrorCode
from tests.broker.data_plane import FETCH, SOON, batch, fetch_request, make_topic, produce, values
from tests.broker.group_clients import OFFSET_COMMIT, find_coordinator
from tests.broker.running import Running
from tests.broker.security.somebody import ROOT, authorizing, create, delete, entry, somebody
from tests.broker.wire_client import Closed, WireClient

LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, WRITE_TXN_MARKERS, ADD_PARTITIONS_TO_TXN = 2, 23, 27, 24
READS = entry("alice", Op.READ, Type.TOPIC, "orders")
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def broker() -> Iterator[Running]:
    with authorizing(offsets_topic_num_partitions="1") as broker:
        for name in ("orders", "secret"):
            make_topic(broker, name)
        create(broker, READS)
        yield broker


@pytest.fixture
def alice(broker: Running) -> Iterator[WireClient]:
    with somebody(broker, "alice") as client:
        yield client


@pytest.fixture
def root(broker: Running) -> Iterator[WireClient]:
    with somebody(broker, ROOT) as client:
        yield client


def partitions(answer: Any) -> dict[str, tuple[ErrorCode, list[str]]]:
    return {
        topic.topic: (topic.partitions[0].error_code, values(topic.partitions[0].records)) for topic in answer.responses
    }


def both(**more: Any) -> dict[str, Any]:
    request = fetch_request(0, topic="orders", **more)
    request["topics"] += fetch_request(0, topic="secret")["topics"]
    return request


def await_waiting(broker: Running, client: WireClient) -> None:
    """Until its fetch waits."""
    while not broker.on_loop(lambda: bool(broker.broker.long_polls.waiting)):
        assert not client.has_answer()


class TestFetchSessions:
    def test_a_partition_that_is_remembered_is_refused_from_the_next_fetch_on(
        self, broker: Running, alice: WireClient, root: WireClient
    ) -> None:
        produce(root, batch("a"), topic="orders")
        first = alice.ask(FETCH, 11, **fetch_request(0, topic="orders", session_id=0, session_epoch=0))
        assert partitions(first) == {"orders": (ErrorCode.NONE, ["a"])}
        delete(broker, READS)
        for epoch in (1, 2):  # an error is told each time
            nothing_new = fetch_request(session_id=first.session_id, session_epoch=epoch)
            assert partitions(alice.ask(FETCH, 11, **nothing_new)) == {"orders": (REFUSED, [])}
        create(broker, READS)
        again = alice.ask(FETCH, 11, **fetch_request(session_id=first.session_id, session_epoch=3))
        assert partitions(again) == {"orders": (ErrorCode.NONE, ["a"])}


class TestFetchesThatWait:
    def test_who_loses_permission_meanwhile_gets_no_records(
        self, broker: Running, alice: WireClient, root: WireClient
    ) -> None:
        """Repaired: a fetch that has waited needs permission when it is answered too (2.6.3: only when it comes)"""
        alice.send(FETCH, 11, **fetch_request(0, topic="orders", max_wait=SOON, session_epoch=-1))
        await_waiting(broker, alice)
        delete(broker, READS)
        produce(root, batch("a"), topic="orders")
        assert partitions(alice.receive()) == {"orders": (REFUSED, [])}

    def test_what_may_not_be_read_does_not_end_the_wait(
        self, broker: Running, alice: WireClient, root: WireClient
    ) -> None:
        """Otherwise its moment would tell when something is written there."""
        alice.send(FETCH, 11, **both(max_wait=SOON, session_epoch=-1))
        await_waiting(broker, alice)
        produce(root, batch("hush"), topic="secret")
        assert not alice.has_answer()
        assert broker.on_loop(lambda: len(broker.broker.long_polls.waiting)) == 1
        produce(root, batch("a"), topic="orders")
        assert partitions(alice.receive()) == {"orders": (ErrorCode.NONE, ["a"]), "secret": (REFUSED, [])}

    def test_where_nothing_may_be_read_there_is_nothing_to_wait_for(self, alice: WireClient) -> None:
        for topic in ("secret", "missing"):
            answer = alice.ask(FETCH, 11, **fetch_request(0, topic=topic, max_wait=SOON, session_epoch=-1))
            assert partitions(answer) == {topic: (REFUSED, [])}


class TestOtherBrokers:
    """Nobody is another broker here, whatever he says."""

    @pytest.mark.parametrize("version", [11, 14, 16])
    def test_who_says_that_he_is_one_needs_to_be_allowed_to_be(
        self, broker: Running, alice: WireClient, version: int
    ) -> None:
        with somebody(broker, ROOT) as client:
            by_id = client.ask(3, 12, topics=[{"name": "orders"}]).topics[0].topic_id
        request = fetch_request(0, topic="orders", session_epoch=-1)
        if version >= 13:
            request["topics"] = [{"topic_id": by_id, "partitions": request["topics"][0]["partitions"]}]
        if version >= 15:
            del request["replica_id"]

        def ask(replica_id: int) -> ErrorCode:
            as_replica = {"replica_state": {"replica_id": replica_id}} if version >= 15 else {"replica_id": replica_id}
            answer = alice.ask(FETCH, version, **request | as_replica)
            return answer.responses[0].partitions[0].error_code

        assert (ask(-1), ask(0), ask(1)) == (ErrorCode.NONE, REFUSED, REFUSED)
        create(broker, entry("alice", Op.CLUSTER_ACTION, Type.CLUSTER))
        assert (ask(-1), ask(0), ask(1)) == (ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NONE)

    def test_who_asks_for_offsets_as_one_does_too(self, broker: Running, alice: WireClient) -> None:
        """Repaired: ListOffsets and OffsetForLeaderEpoch of a replica need CLUSTER_ACTION (2.6.3: DESCRIBE, as those
        of a consumer)"""

        def ask(replica_id: int) -> set[ErrorCode]:
            offsets = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
            epochs = [{"topic": "orders", "partitions": [{"partition": 0, "leader_epoch": 0}]}]
            answers = (
                alice.ask(LIST_OFFSETS, 5, replica_id=replica_id, topics=offsets),
                alice.ask(OFFSET_FOR_LEADER_EPOCH, 3, replica_id=replica_id, topics=epochs),
            )
            return {answer.topics[0].partitions[0].error_code for answer in answers}

        assert (ask(-1), ask(1)) == ({ErrorCode.NONE}, {REFUSED})
        create(broker, entry("alice", Op.CLUSTER_ACTION, Type.CLUSTER))
        assert (ask(-1), ask(1)) == ({ErrorCode.NONE}, {ErrorCode.NONE})

    @pytest.mark.parametrize(("api_key", "version"), [(WRITE_TXN_MARKERS, 1), (ADD_PARTITIONS_TO_TXN, 4)])
    def test_what_brokers_tell_each_other_nobody_is_asked(self, root: WireClient, api_key: int, version: int) -> None:
        root.send(api_key, version)
        with pytest.raises(Closed):
            root.receive()


class TestTheShortWay:
    """Commits that compiled code takes need the same permissions as others."""

    def commit(self, client: WireClient, *topics: str) -> list[ErrorCode]:
        partitions = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
        answer = client.ask(
            OFFSET_COMMIT,
            7,
            group_id="billing",
            generation_id_or_member_epoch=-1,
            topics=[{"name": name, "partitions": partitions} for name in topics],
        )
        return [topic.partitions[0].error_code for topic in answer.topics]

    def committed(self, broker: Running) -> set[str]:
        _, found = broker.on_loop(lambda: broker.broker.groups.handle_fetch_offsets("billing"))  # type: ignore[arg-type]
        return {partition.topic for partition in found}

    def test_they_are_refused_where_others_are(self, broker: Running, alice: WireClient, root: WireClient) -> None:
        find_coordinator(root, "billing")
        broker.on_loop(broker.broker.short_way.open)
        refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert self.commit(alice, "orders", "secret") == [refused, refused]
        create(broker, entry("alice", Op.READ, Type.GROUP, "billing"))
        assert self.commit(alice, "secret") == [REFUSED]
        assert self.committed(broker) == set()
        assert self.commit(alice, "orders", "secret", "missing") == [ErrorCode.NONE, REFUSED, REFUSED]
        assert self.committed(broker) == {"orders"}
        assert self.commit(alice, "orders") == [ErrorCode.NONE]
        delete(broker, READS)
        assert self.commit(alice, "orders") == [REFUSED]

    def test_who_may_goes_the_short_way(
        self, broker: Running, alice: WireClient, root: WireClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        find_coordinator(root, "billing")
        broker.on_loop(broker.broker.short_way.open)
        create(broker, entry("alice", Op.READ, Type.GROUP, "billing"))
        monkeypatch.delattr("kohort.broker.api.offset_commit._commit")
        assert self.commit(alice, "orders") == [ErrorCode.NONE]
