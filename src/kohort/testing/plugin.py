"""The pytest plug-in: a broker for a test that asks for one.

    def test_orders(kohort_broker):
        producer = Producer({"bootstrap.servers": kohort_broker.bootstrap_servers})

It is loaded into every run of pytest, so it imports the broker when a test asks for it and not before.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kohort.testing.broker import Broker
    from kohort.testing.clocks import BrokerClock

_SETTINGS = "kohort_settings"
_CLOCK = "kohort_cluster_clock"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_SETTINGS}(settings): settings of `kohort_broker`, under Kafka's names")


@pytest.fixture
def kohort_broker(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker in memory for this test alone; its clock stands still if the test asks for `kohort_cluster_clock`."""
    from kohort.testing.broker import Broker

    settings: dict[str, str | int | float | bool] = {}
    for marker in reversed(list(request.node.iter_markers(_SETTINGS))):
        for given in marker.args:
            settings |= given
    with Broker(settings=settings, clock="virtual" if _CLOCK in request.fixturenames else "real") as broker:
        yield broker


@pytest.fixture
def kohort_cluster_clock(kohort_broker: "Broker") -> "BrokerClock":
    """The virtual clock of `kohort_broker`: `advance(ms)` makes time pass."""
    return kohort_broker.clock
