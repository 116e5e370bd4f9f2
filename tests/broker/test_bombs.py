"""Batches that become far more than they are: each is refused as soon as it is known, and costs little until then."""

from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.bombs import bombs
from tests.broker.data_plane import batch, produce
from tests.broker.served import served
from tests.broker.wire_client import WireClient

CREATE_TOPICS = 19
_MIB = 1 << 20
_MOST = 160 * _MIB
"""64 MiB is what a batch may become; it is copied once."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_a_bomb_in_a_produce_request_is_refused_and_costs_little() -> None:
    hostile = bombs()
    assert all(len(bomb) < _MIB for bomb in hostile.values())
    with served() as (port, most_memory), WireClient(port) as client:
        client.ask(CREATE_TOPICS, 4, topics=[{"name": "orders", "num_partitions": 1, "replication_factor": 1}])
        assert produce(client, batch("a")).error_code == ErrorCode.NONE
        before = most_memory()
        for _ in range(3):
            told = {name: produce(client, bomb).error_code for name, bomb in hostile.items()}
            assert told == dict.fromkeys(hostile, ErrorCode.INVALID_RECORD)
        grown = most_memory() - before
        assert produce(client, batch("b")).base_offset == 1
    assert grown < _MOST, f"{grown / _MIB:.0f} MiB"
