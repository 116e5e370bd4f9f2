"""Who takes more than his quota is answered at once, told to wait, and not heard meanwhile."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kohort.broker.broker import Broker as ServedBroker
from kohort.testing import Broker
from tests.broker.data_plane import FETCH, LIST_OFFSETS, METADATA, PRODUCE, TOPIC, batch, produce_request
from tests.broker.quotas.quota_requests import alter, entity
from tests.broker.wire_client import WireClient, request_bytes

HEARTBEAT, OFFSET_COMMIT, API_VERSIONS = 12, 8, 18
ANONYMOUS = entity(user="ANONYMOUS")


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Its time stands still; 11 windows of a second."""
    with Broker(clock="virtual") as broker:
        broker.create_topic(TOPIC)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with client_of(broker) as client:
        yield client


def client_of(broker: Broker, client_id: str = "app") -> WireClient:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return WireClient(int(port), host, client_id=client_id)


def ms(told: Any) -> int:
    return told.throttle_time // timedelta(milliseconds=1)


def produce(client: WireClient, size: int = 1_000, **kinds: Any) -> int:
    """How long the broker wants its client to wait."""
    return ms(client.ask(PRODUCE, 8, **produce_request(batch("x" * size), **kinds)))


def request_size(size: int) -> int:
    return len(request_bytes(PRODUCE, 8, 1, "app", produce_request(batch("x" * size))))


def fetch(client: WireClient, **kinds: Any) -> Any:
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    return client.ask(
        FETCH, 11, **{"max_bytes": 1 << 20, "topics": [{"topic": TOPIC, "partitions": [wanted]}], **kinds}
    )


def is_muted(broker: Broker, client: WireClient) -> bool:
    """Whether a request waits, after one of somebody else was served that came later."""
    client.send(METADATA, 9, topics=[])
    with client_of(broker, "other") as other:
        for _ in range(20):
            other.ask(API_VERSIONS, 0)
    return not client.has_answer()


def test_without_quotas_nobody_waits_and_nothing_is_counted(broker: Broker, client: WireClient) -> None:
    for _ in range(20):
        assert produce(client, 100_000) == 0
    assert not broker._call(_is_active)


def _is_active(broker: ServedBroker) -> bool:
    return broker.quotas.is_active


class TestProducing:
    def test_what_is_too_much_is_answered_at_once_and_the_next_request_waits(
        self, broker: Broker, client: WireClient
    ) -> None:
        alter(client, ANONYMOUS, producer_byte_rate=10_000)
        assert produce(client, 90_000) == 0  # 10 s' worth may come at once
        told = produce(client, 90_000)
        size = 2 * request_size(90_000)
        assert told == round((size / 10 - 10_000) / 10_000 * 10_000)
        assert is_muted(broker, client)
        broker.clock.advance(told)
        assert client.receive().cluster_id == "kohort"

    def test_after_the_wait_one_may_go_on_at_the_rate_that_is_allowed(self, broker: Broker, client: WireClient) -> None:
        alter(client, ANONYMOUS, producer_byte_rate=10_000)
        sent = passed_ms = 0
        for _ in range(60):
            wait_ms = produce(client, 20_000)
            sent += request_size(20_000)
            broker.clock.advance(wait_ms + 1)
            passed_ms += wait_ms + 1
        assert sent / (passed_ms / 1000 + 10) == pytest.approx(10_000, rel=0.05)

    def test_who_wants_no_answer_has_to_wait_all_the_same(self, broker: Broker, client: WireClient) -> None:
        alter(client, ANONYMOUS, producer_byte_rate=1_000)
        client.send(PRODUCE, 8, **produce_request(batch("x" * 20_000), acks=0))
        assert is_muted(broker, client)
        broker.clock.advance(60_000)
        assert client.receive_frame()

    def test_others_are_not_held_up(self, broker: Broker, client: WireClient) -> None:
        alter(client, entity(client_id="app"), producer_byte_rate=1_000)
        assert produce(client, 50_000) > 0
        with client_of(broker, "other") as other:
            assert produce(other, 50_000) == 0
        with client_of(broker, "app") as same:  # another connection of the same client has its quota with it
            assert produce(same, 1) > 0

    def test_a_quota_of_a_user_is_for_all_of_his_clients_together(self, broker: Broker, client: WireClient) -> None:
        alter(client, ANONYMOUS, producer_byte_rate=10_000)
        assert produce(client, 95_000) == 0
        with client_of(broker, "other") as other:
            assert produce(other, 95_000) > 0

    def test_the_default_for_client_ids_is_for_each_of_them(self, broker: Broker, client: WireClient) -> None:
        alter(client, entity(client_id=None), producer_byte_rate=10_000)
        assert produce(client, 95_000) == 0
        with client_of(broker, "other") as other:
            assert produce(other, 95_000) == 0
        assert produce(client, 95_000) > 0

    def test_what_is_said_of_user_and_client_counts_before_what_is_said_of_one(
        self, broker: Broker, client: WireClient
    ) -> None:
        alter(client, entity(user=None), producer_byte_rate=1)
        alter(client, entity(user="ANONYMOUS", client_id="app"), producer_byte_rate=10_000_000)
        assert produce(client, 95_000) == 0
        with client_of(broker, "other") as other:
            assert produce(other, 95_000) > 0

    def test_when_the_quota_goes_so_does_the_waiting(self, broker: Broker, client: WireClient) -> None:
        alter(client, ANONYMOUS, producer_byte_rate=1_000)
        with client_of(broker) as other:
            assert produce(other, 50_000) > 0
        alter(client, ANONYMOUS, producer_byte_rate=None)
        assert produce(client, 50_000) == 0


class TestFetching:
    def test_what_is_too_much_is_not_told_until_the_wait_is_over(self, broker: Broker, client: WireClient) -> None:
        for _ in range(3):
            produce(client, 50_000)
        alter(client, ANONYMOUS, consumer_byte_rate=6_000)
        first = fetch(client)
        records = first.responses[0].partitions[0].records
        assert ms(first) == 0
        assert 50_000 < len(records) < 60_000  # no more than may come at once
        refused = fetch(client)
        assert (refused.error_code, refused.responses) == (0, ())
        assert is_muted(broker, client)
        broker.clock.advance(ms(refused))
        assert client.receive().cluster_id == "kohort"
        broker.clock.advance(11_000)
        again = fetch(client)
        assert (ms(again), len(again.responses[0].partitions[0].records)) == (0, len(records))

    def test_a_session_goes_on_behind_the_wait(self, broker: Broker, client: WireClient) -> None:
        produce(client, 50_000)
        opened = fetch(client, session_epoch=0)
        assert opened.session_id != 0
        produce(client, 50_000)
        alter(client, ANONYMOUS, consumer_byte_rate=6_000)
        assert fetch(client, session_id=0, session_epoch=-1).responses  # uses up what there is
        refused = fetch(client, session_id=opened.session_id, session_epoch=1, topics=[])
        assert (refused.session_id, refused.responses) == (opened.session_id, ())
        assert ms(refused) > 0
        broker.clock.advance(ms(refused) + 11_000)
        told = fetch(client, session_id=opened.session_id, session_epoch=2, topics=[])
        assert (told.error_code, told.session_id) == (0, opened.session_id)
        assert told.responses[0].partitions[0].records

    def test_a_session_is_not_begun_with_a_refusal(self, client: WireClient) -> None:
        produce(client, 50_000)
        alter(client, ANONYMOUS, consumer_byte_rate=6_000)
        assert fetch(client).responses
        refused = fetch(client, session_epoch=0)
        assert (ms(refused) > 0, refused.session_id, refused.responses) == (True, 0, ())

    def test_one_batch_is_given_however_large_it_is(self, client: WireClient) -> None:
        produce(client, 50_000)
        alter(client, ANONYMOUS, consumer_byte_rate=1)
        fetched = fetch(client)
        assert ms(fetched) > 0  # Kafka too tells such a client to wait; without a limit there is no end to it
        assert fetched.responses == ()


class TestComputing:
    def test_who_keeps_the_broker_busy_waits_no_longer_than_a_window(self, broker: Broker, client: WireClient) -> None:
        alter(client, entity(client_id="app"), request_percentage=0.000001)
        told = client.ask(METADATA, 9, topics=[])
        assert ms(told) == 1_000
        assert is_muted(broker, client)
        broker.clock.advance(1_000)
        assert client.receive().cluster_id == "kohort"

    @pytest.mark.parametrize(
        ("api_key", "version", "request_"),
        [
            (HEARTBEAT, 4, {"group_id": "g"}),
            (OFFSET_COMMIT, 7, {"group_id": "g", "topics": []}),
            (LIST_OFFSETS, 5, {"replica_id": -1, "topics": []}),
            (METADATA, 4, {"topics": []}),
        ],
    )
    def test_it_is_told_wherever_there_is_a_field_for_it(
        self, client: WireClient, api_key: int, version: int, request_: dict[str, Any]
    ) -> None:
        alter(client, ANONYMOUS, request_percentage=0.000001)
        assert ms(client.ask(api_key, version, **request_)) == 1_000

    def test_commits_on_the_short_way_tell_it_too(self, broker: Broker, client: WireClient) -> None:
        broker._call(lambda served: served.short_way.open())
        offsets = [
            {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
        ]
        commit = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": TOPIC, "partitions": offsets}],
        }
        client.ask(10, 2, key="g", key_type=0)
        for _ in range(2):
            answer = client.ask(OFFSET_COMMIT, 8, **commit)
            assert answer.topics[0].partitions[0].error_code == 0
        assert ms(answer) == 0
        alter(client, ANONYMOUS, request_percentage=0.000001)
        answer = client.ask(OFFSET_COMMIT, 8, **commit)
        assert (answer.topics[0].partitions[0].error_code, ms(answer)) == (0, 1_000)

    def test_waiting_for_others_costs_nothing(self, client: WireClient) -> None:
        """A fetch that waits for records keeps nobody busy."""
        alter(client, ANONYMOUS, request_percentage=90)
        client.send(
            FETCH,
            11,
            max_wait=200,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[{"topic": TOPIC, "partitions": [{"partition": 0, "partition_max_bytes": 1 << 20}]}],
        )
        assert ms(client.receive()) == 0


def test_clients_cannot_fill_the_memory_with_their_ids(broker: Broker, client: WireClient) -> None:
    alter(client, entity(client_id=None), producer_byte_rate=1_000)

    def ask_as_many(served: ServedBroker) -> tuple[int, int]:
        for number in range(25_000):
            share = served.quotas.shares_of("ANONYMOUS", f"client-{number}").produce
            assert share is not None
            share.take(1, served.quotas.now_ms())
        return len(served.quotas._shares), len(served.quotas._rates)

    assert max(broker._call(ask_as_many)) <= 20_000
