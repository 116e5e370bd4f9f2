"""`/metrics`: what a broker counts, under Kafka's names."""

from pathlib import Path

import pytest

from tests.broker.data_plane import TOPIC, batch, make_topic, produce
from tests.broker.group_clients import JOIN_GROUP, commit, find_coordinator, join_request, settle
from tests.broker.http_port import http_of
from tests.broker.running import running
from tests.broker.security.logins import OPEN_AND_SASL, SHA_256, ScramClient, add_users, at_sasl, log_in_by_scram
from tests.broker.wire_client import Closed

GROUP = "readers"
HOSTILE = '<img src=x onerror="alert(1)">\u202e\x00\n\\"]}'
UNSUPPORTED_VERSION, UNKNOWN_TOPIC = 35, 3


def test_every_number_of_the_coordinators_is_told_under_kafkas_name() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        commit_to = settle(client, GROUP, TOPIC, 0)
        assert commit(client, GROUP, TOPIC, {0: 0}, commit_to) == 0
        groups = broker.on_loop(broker.broker.groups.snapshot)
        transactions = broker.on_loop(broker.broker.transactions.snapshot)
        told = {name for name, _ in http.metrics()}
        for name in groups:
            plain = name.lower().replace("-", "_")
            assert any(f"_{plain}" in one for one in told), name
        for name in transactions:
            assert f"kafka_server_transaction_coordinator_metrics_{name.replace('-', '_')}" in told
        assert http.metric("kafka_coordinator_group_groupmetadatamanager_numgroupsstable") == 1
        assert http.metric("kafka_server_group_coordinator_metrics_offset_commit_count_total") == 1
        assert http.metric("kafka_server_group_coordinator_metrics_group_completed_rebalance_count_total") == 1


def test_every_metric_has_a_help_text_and_a_type() -> None:
    with running() as broker, http_of(broker) as http:
        answer = http.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        lines = answer.body.decode().splitlines()
        helped = {line.split()[2] for line in lines if line.startswith("# HELP") and len(line.split()) > 3}
        typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        assert helped == typed
        for line in lines:
            if not line.startswith("#"):
                name = line.partition("{")[0].split()[0]
                family = {name, *(name.removesuffix(end) for end in ("_bucket", "_sum", "_count"))}
                assert family & typed, line


def test_requests_are_counted_by_api_and_version_with_their_times() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        for _ in range(3):
            commit(client, GROUP, TOPIC, {0: 0})
        requests = "kafka_network_requestmetrics_requests_total"
        times = "kafka_network_requestmetrics_totaltimems"
        assert http.metric(requests, request="OffsetCommit", version="5") == 3
        assert http.metric(requests, request="FindCoordinator", version="0") == 1
        assert http.metric(f"{times}_count", request="OffsetCommit") == 3
        assert http.metric(f"{times}_bucket", request="OffsetCommit", le="+Inf") == 3
        assert http.metric(f"{times}_sum", request="OffsetCommit") > 0


def test_errors_are_counted_wherever_in_an_answer_they_are_told() -> None:
    with running() as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker)
        find_coordinator(client, GROUP)
        answer = client.ask(JOIN_GROUP, 3, **join_request(GROUP, TOPIC, member_id="nobody"))
        assert answer.error_code == 25
        assert commit(client, GROUP, "no-such-topic", {0: 0, 1: 0}) == UNKNOWN_TOPIC
        assert client.ask(12, 0, group_id=GROUP, generation_id=1, member_id="x").error_code == 25
        errors = "kafka_network_requestmetrics_errors_total"
        assert http.metric(errors, request="JoinGroup", error="UNKNOWN_MEMBER_ID") == 1
        assert http.metric(errors, request="OffsetCommit", error="UNKNOWN_TOPIC_OR_PARTITION") == 2
        assert http.metric(errors, request="Heartbeat", error="UNKNOWN_MEMBER_ID") == 1


def test_a_version_that_is_not_served_is_an_error_and_bytes_that_are_no_request_are_counted() -> None:
    with running() as broker, http_of(broker) as http:
        with broker.client() as client:
            client.send_frame(bytes.fromhex("0012 7fff 00000007 ffff"))
            assert client.receive_frame()[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big")
        with broker.client() as client:
            client.send_frame(b"?")
            with pytest.raises(Closed):
                client.receive_frame()
        errors = "kafka_network_requestmetrics_errors_total"
        assert http.metric(errors, request="ApiVersions", error="UNSUPPORTED_VERSION") == 1
        assert http.metric("kohort_bad_requests_total") == 1


def test_connections_and_bytes_are_counted() -> None:
    with running() as broker, http_of(broker) as http:
        sockets = "kafka_server_socket_server_metrics"
        with broker.client() as client:
            client.send_frame(bytes.fromhex("0012 0000 00000007 ffff"))
            answer = client.receive_frame()
            told = {name: value for (name, _), value in http.metrics().items()}
            assert told[f"{sockets}_connection_count"] == 1
            assert told[f"{sockets}_connection_creation_total"] == 1
            assert told[f"{sockets}_connection_close_total"] == 0
            assert told[f"{sockets}_incoming_byte_total"] == 4 + 10
            assert told[f"{sockets}_outgoing_byte_total"] == 4 + len(answer)


def test_logins_are_counted() -> None:
    with running(settings=OPEN_AND_SASL) as broker, http_of(broker) as http:
        add_users(broker, {"alice": "her password"})
        for password in ("her password", "her password", "guessed"):
            with at_sasl(broker) as client:
                log_in_by_scram(client, ScramClient(SHA_256, "alice", password))
        sockets = "kafka_server_socket_server_metrics"
        assert http.metric(f"{sockets}_successful_authentication_total") == 2
        assert http.metric(f"{sockets}_failed_authentication_total") == 1
        assert http.metric(f"{sockets}_successful_reauthentication_total") == 0
        assert http.metric(f"{sockets}_expired_connections_killed_total") == 0


def test_logs_and_their_syncs_are_counted(tmp_path: Path) -> None:
    with running(tmp_path) as broker, http_of(broker) as http, broker.client() as client:
        make_topic(broker, TOPIC, 2)
        find_coordinator(client, GROUP)
        assert produce(client, batch("a", "b", "c")).error_code == 0
        assert commit(client, GROUP, TOPIC, {0: 1, 1: 0}) == 0
        assert http.metric("kafka_log_log_logendoffset", topic=TOPIC) == 3
        assert http.metric("kafka_log_log_logendoffset", topic="__consumer_offsets") == 2
        assert http.metric("kafka_log_log_size", topic="__consumer_offsets") > 0
        assert http.metric("kafka_log_log_numlogsegments", topic=TOPIC) == 2
        assert http.metric("kafka_log_logflushstats_logflushrateandtimems_count") >= 2


def test_what_clients_call_themselves_is_no_label() -> None:
    with running() as broker, http_of(broker) as http, broker.client(client_id=HOSTILE) as client:
        make_topic(broker)
        settle(client, GROUP + HOSTILE, TOPIC, 0)
        text = http.get("/metrics").body.decode()
        assert GROUP not in text
        assert "onerror" not in text
