"""A broker that nobody can connect to: what is in its directory, looked at and changed while it does not run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from kohort.broker.broker import Broker
from kohort.broker.settings import BrokerConfig
from kohort.clock import SystemClock
from kohort.errors import StorageFailed
from kohort.log import meta_properties
from kohort.log.files import RealFiles, join


@contextmanager
def offline_broker(data: str) -> Iterator[Broker]:
    """The broker whose directory it is; `StorageFailed` if that runs, or if the disk fails."""
    files, failures = RealFiles(), list[StorageFailed]()
    config = BrokerConfig(data=data, broker_id=_owner(files, data))
    broker = Broker(config, files, SystemClock(), asyncio.get_running_loop(), on_failure=failures.append)
    try:
        yield broker
    finally:
        broker.stop()
    if failures:
        raise failures[0]


def _owner(files: RealFiles, data: str) -> int:
    path = join(data, meta_properties.NAME)
    if not files.exists(path):
        return 0
    properties = meta_properties.read_properties(files, path)
    owner = properties.get("broker.id", properties.get("node.id", "0"))
    return int(owner) if owner.isdecimal() else 0
