"""Writes `docs/reference/metrics.md`: what `/metrics` of a broker tells, asked from a broker."""

import asyncio
from collections.abc import Iterator

from prometheus_client.core import Metric

from docs.options import cells
from kohort.broker.broker import Broker
from kohort.broker.http.metrics import BrokerMetrics
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig
from kohort.clock import SystemClock
from kohort.config import FlushMode
from kohort.log.simulated_files import SimulatedFiles

INTRO = """# Metrics

<!-- written by `python -m docs` from what a broker exports -->

`kohort serve --http 127.0.0.1:9644` has `/metrics` for Prometheus. What Kafka has a name for carries it, as Prometheus'
JMX exporter writes it, so that what was made for Kafka finds it; what is ours alone begins with `kohort_`. Names that
clients choose, except for topics, are no labels: there may be any number of them.

"""
OUTRO = """
A histogram has samples `_bucket` (with the label `le`), `_count` and `_sum`. Rates are over the last 30 to 60 seconds.
Besides, `process_*` tells memory, processor time and open files of the process, as everywhere.
"""
SUFFIXES = {"counter": "_total", "info": "_info"}
"""What Prometheus' text format adds to the names of such families."""


def page() -> str:
    """The whole of `docs/reference/metrics.md`."""
    return INTRO + "\n".join(_rows(asyncio.run(_collected()))) + "\n" + OUTRO


async def _collected() -> list[Metric]:
    """All families, with or without samples; a broker that has not begun to serve has them too."""
    loop = asyncio.get_running_loop()
    config = BrokerConfig(data="/memory", log_flush_mode=FlushMode.OS)
    broker = Broker(config, SimulatedFiles(), SystemClock(), loop, on_failure=lambda _: None)
    try:
        return list(BrokerMetrics(Server(broker, loop)).collect())
    finally:
        broker.stop()


def _rows(metrics: list[Metric]) -> Iterator[str]:
    yield "| name | type | labels | |"
    yield "|---|---|---|---|"
    labels = _labels_of(metrics)
    for metric in metrics:
        yield cells(
            f"`{metric.name}{SUFFIXES.get(metric.type, '')}`", metric.type, labels[metric.name], metric.documentation
        )


def _labels_of(metrics: list[Metric]) -> dict[str, str]:
    """A family knows the names of its labels before it has a sample, but has no public word for them."""
    return {metric.name: ", ".join(f"`{name}`" for name in getattr(metric, "_labelnames", ())) for metric in metrics}
