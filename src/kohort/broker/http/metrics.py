"""`/metrics`, for Prometheus.

What Kafka has a name for carries it, as Prometheus' JMX exporter writes it: `offset-commit-rate` of
`kafka.server:type=group-coordinator-metrics` is `kafka_server_group_coordinator_metrics_offset_commit_rate`. Counters
end in `_total`. What is ours alone begins with `kohort_`. Names that clients choose, except for topics, are no labels:
there may be any number of them.
"""

import asyncio
from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from kohort.broker.http.health import offline_partitions, problems
from kohort.broker.schemas import api_name
from kohort.broker.server import Server
from kohort.broker.traffic import Traffic
from kohort.errors import ErrorCode
from kohort.log.durations import BOUNDS_MS, Durations

_OWN = {
    "partition-load-records": "Records read when partitions of the offsets topic were loaded.",
    "unreadable-records": "Records of the offsets topic that could not be read and were skipped.",
}
_OF_GROUPS = {
    "NumOffsets": "Committed offsets in memory.",
    "NumGroups": "Groups in memory.",
    "NumGroupsPreparingRebalance": "Groups that wait for their members to join.",
    "NumGroupsCompletingRebalance": "Groups that wait for their leader's assignment.",
    "NumGroupsStable": "Groups whose members have their assignments.",
    "NumGroupsDead": "Groups that are being let go of.",
    "NumGroupsEmpty": "Groups without members.",
    "offset-commit-count": "Offsets committed.",
    "offset-commit-rate": "Offsets committed a second.",
    "offset-expiration-count": "Offsets that expired.",
    "offset-expiration-rate": "Offsets that expired, a second.",
    "offset-deletion-count": "Offsets deleted on request.",
    "offset-deletion-rate": "Offsets deleted on request, a second.",
    "group-completed-rebalance-count": "Rebalances completed.",
    "group-completed-rebalance-rate": "Rebalances completed a second.",
    "partition-load-time-max": "The longest recent load of a partition of the offsets topic, in ms.",
    "partition-load-time-avg": "The average recent load of a partition of the offsets topic, in ms.",
}
_OF_TRANSACTIONS = {
    "partition-load-time-max": "The longest recent load of a partition of the transaction topic, in ms.",
    "partition-load-time-avg": "The average recent load of a partition of the transaction topic, in ms.",
}


def registry_of(server: Server) -> CollectorRegistry:
    """Everything that one server has to tell, and what its process needs."""
    registry = CollectorRegistry()
    registry.register(BrokerMetrics(server))
    ProcessCollector(registry=registry)
    return registry


class BrokerMetrics(Collector):
    """Reads the numbers of a broker when somebody asks for them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._broker = server.broker
        self._version = version("kohort")

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("kohort_build", "What runs here.", {"version": self._version})
        yield GaugeMetricFamily(
            "kohort_healthy", "1 if /healthz has nothing to complain about.", int(not problems(self._broker))
        )
        tasks = len(asyncio.all_tasks(self._broker.loop))
        yield GaugeMetricFamily("kohort_tasks", "Tasks of the event loop that have not ended.", tasks)
        yield from self._groups()
        for name, value in self._broker.transactions.snapshot().items():
            of_kafka = f"kafka_server_transaction_coordinator_metrics_{_snake(name)}"
            yield GaugeMetricFamily(of_kafka, _OF_TRANSACTIONS[name], value)
        yield from _requests(self._server.traffic)
        yield from self._sockets()
        yield from self._logins()
        yield from self._logs()

    def _groups(self) -> Iterator[Metric]:
        for name, value in self._broker.groups.snapshot().items():
            if name in _OWN:
                yield CounterMetricFamily(f"kohort_group_coordinator_{_snake(name)}", _OWN[name], value)
            elif name.endswith("-count"):
                of_kafka = f"kafka_server_group_coordinator_metrics_{_snake(name)}"
                yield CounterMetricFamily(of_kafka, _OF_GROUPS[name], value)
            elif "-" in name:
                of_kafka = f"kafka_server_group_coordinator_metrics_{_snake(name)}"
                yield GaugeMetricFamily(of_kafka, _OF_GROUPS[name], value)
            else:
                of_kafka = f"kafka_coordinator_group_groupmetadatamanager_{name.lower()}"
                yield GaugeMetricFamily(of_kafka, _OF_GROUPS[name], value)

    def _sockets(self) -> Iterator[Metric]:
        of_kafka, traffic = "kafka_server_socket_server_metrics", self._server.traffic
        yield GaugeMetricFamily(f"{of_kafka}_connection_count", "Open connections.", len(self._server.connections))
        for name, help_text, value in (
            ("connection_creation", "Connections accepted.", traffic.connections_opened),
            ("connection_close", "Connections closed.", traffic.connections_closed),
            ("incoming_byte", "Bytes read from clients.", traffic.bytes_in),
            ("outgoing_byte", "Bytes written to clients.", traffic.bytes_out),
        ):
            yield CounterMetricFamily(f"{of_kafka}_{name}", help_text, value)
        help_text = "Connections closed because of what came on them."
        yield CounterMetricFamily("kohort_bad_requests", help_text, traffic.bad_requests)
        help_text = "Answers that told a client to wait, because of a quota."
        yield CounterMetricFamily("kohort_throttled_answers", help_text, self._broker.quotas.throttled)
        limits = self._server.limits
        help_text = "Connections of which nobody knows yet what they want."
        yield GaugeMetricFamily("kohort_connections_half_open", help_text, len(limits.half_open))
        for name, help_text, value in (
            ("refused", "Connections refused because their address had too many.", limits.refused),
            ("given_up", "Connections closed because they did not say what they want.", limits.given_up),
            ("slow", "Connections closed because a request did not go on.", self._server.slow_requests.dropped),
        ):
            yield CounterMetricFamily(f"kohort_connections_{name}", help_text, value)

    def _logins(self) -> Iterator[Metric]:
        of_kafka, logins = "kafka_server_socket_server_metrics", self._server.traffic.logins
        for name, help_text, value in (
            ("successful_authentication", "Logins, those that were renewed included.", logins.succeeded),
            ("successful_reauthentication", "Logins that were renewed.", logins.renewed),
            ("failed_authentication", "Logins that have failed.", logins.failed),
            (
                "expired_connections_killed",
                "Connections closed because their login did not count any more.",
                logins.expired,
            ),
        ):
            yield CounterMetricFamily(f"{of_kafka}_{name}", help_text, value)

    def _logs(self) -> Iterator[Metric]:
        topics, directory = self._broker.topics, self._broker.topics.directory
        size = GaugeMetricFamily("kafka_log_log_size", "Bytes of a topic's partitions.", labels=["topic"])
        help_text = "The end offsets of a topic's partitions, added up."
        end = GaugeMetricFamily("kafka_log_log_logendoffset", help_text, labels=["topic"])
        help_text = "Segments of a topic's partitions."
        segments = GaugeMetricFamily("kafka_log_log_numlogsegments", help_text, labels=["topic"])
        for topic in topics:
            logs = [log for n in range(topic.partition_count) if (log := topics.log(topic.name, n)) is not None]
            size.add_metric([topic.name], sum(log.size for log in logs))
            end.add_metric([topic.name], sum(log.log_end_offset for log in logs))
            segments.add_metric([topic.name], sum(len(log.segments) for log in logs))
        yield from (size, end, segments)
        of_kafka = "kafka_server_replicamanager"
        yield GaugeMetricFamily(f"{of_kafka}_partitioncount", "Partitions that are served.", len(directory.logs))
        offline = len(offline_partitions(self._broker))
        yield GaugeMetricFamily(f"{of_kafka}_offlinereplicacount", "Partitions that could not be opened.", offline)
        help_text = "Time that a sync of a log took, in ms."
        flushes = HistogramMetricFamily("kafka_log_logflushstats_logflushrateandtimems", help_text, labels=[])
        _add(flushes, [], self._broker.flusher.flush_times)
        yield flushes


def _requests(traffic: Traffic) -> Iterator[Metric]:
    of_kafka = "kafka_network_requestmetrics"
    requests = CounterMetricFamily(f"{of_kafka}_requests", "Requests served.", labels=["request", "version"])
    help_text = "Errors told, for a request or for a part of it."
    errors = CounterMetricFamily(f"{of_kafka}_errors", help_text, labels=["request", "error"])
    help_text = "Time from the first look at a request to its answer, in ms."
    times = HistogramMetricFamily(f"{of_kafka}_totaltimems", help_text, labels=["request"])
    for key, counted in traffic.apis.items():
        if not any(counted.times.counts) and not any(counted.requests):
            continue
        served = next((number for number, count in enumerate(counted.requests) if count), len(counted.requests) - 1)
        name = api_name(key, served)
        for number, count in enumerate(counted.requests):
            if count:
                requests.add_metric([name, str(number)], count)
        for code, count in counted.errors.items():
            errors.add_metric([name, ErrorCode(code).name], count)
        _add(times, [name], counted.times)
    yield from (requests, errors, times)


def _add(family: HistogramMetricFamily, labels: list[str], durations: Durations) -> None:
    ends = [*(f"{bound:.1f}" for bound in BOUNDS_MS), "+Inf"]
    buckets = list(zip(ends, accumulate(durations.counts), strict=True))
    family.add_metric(labels, buckets, durations.total_s * 1000)


def _snake(name: str) -> str:
    return name.replace("-", "_")
