"""Bytes of requests in progress are bounded over all connections: who comes when nothing is left has to wait."""

import struct
from contextlib import ExitStack

from kohort.broker.security.request_memory import RequestMemory
from tests.broker.group_clients import find_coordinator
from tests.broker.running import Running, running

METADATA, JOIN_GROUP = 3, 11
_MIB = 1 << 20


class Reader:
    def __init__(self) -> None:
        self.is_woken = False

    def on_memory(self) -> None:
        self.is_woken = True


class TestWhoMayGoOn:
    def setup_method(self) -> None:
        self.memory = RequestMemory(100)
        self.readers = [Reader() for _ in range(3)]

    def test_as_long_as_there_is_room_everybody_may(self) -> None:
        self.memory.change(99)
        assert all(self.memory.may_go_on(reader) for reader in self.readers)

    def test_when_there_is_none_one_of_them_may_and_the_next_when_that_is_done(self) -> None:
        self.memory.change(150)
        assert [self.memory.may_go_on(reader) for reader in self.readers] == [True, False, False]
        assert self.memory.may_go_on(self.readers[0])  # it is the same one still
        self.memory.done(self.readers[0])
        assert [reader.is_woken for reader in self.readers] == [False, True, True]  # and asks again

    def test_when_there_is_room_again_all_are_woken(self) -> None:
        self.memory.change(150)
        for reader in self.readers:
            self.memory.may_go_on(reader)
        self.memory.change(-60)
        assert [reader.is_woken for reader in self.readers] == [False, True, True]

    def test_whoever_has_gone_is_not_woken(self) -> None:
        self.memory.change(150)
        for reader in self.readers:
            self.memory.may_go_on(reader)
        self.memory.done(self.readers[1])
        self.memory.change(-60)
        assert [reader.is_woken for reader in self.readers] == [False, False, True]


def used(broker: Running) -> int:
    memory = broker.server.request_memory
    assert memory is not None
    return broker.on_loop(lambda: memory.used)


def half_a_request(size: int) -> bytes:
    """The begin of one that says that it will be so large."""
    return struct.pack(">ihhih", size, METADATA, 9, 1, -1) + b"\0"


def joining(group: str, metadata: bytes) -> dict[str, object]:
    return {
        "group_id": group,
        "session_timeout": 60_000,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }


def test_when_it_is_too_much_large_requests_wait_and_small_ones_do_not() -> None:
    settings = {"queued.max.request.bytes": str(_MIB)}
    with running(settings=settings) as broker, ExitStack() as stack:
        one, other, small = (stack.enter_context(broker.client()) for _ in range(3))
        whole = half_a_request(30 * _MIB) + bytes(30 * _MIB - 11)
        one.send_raw(whole[: 2 * _MIB])
        while used(broker) < 2 * _MIB:
            pass
        sent = other.send_until_it_blocks(whole[:_MIB], limit=30 * _MIB)
        assert sent < 20 * _MIB  # what is not read waits in the sockets
        assert used(broker) < 4 * _MIB
        for _ in range(100):
            assert small.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
        one.send_raw(whole[2 * _MIB :])
        assert one.receive_frame()
        one.close()
        other.close()
        while used(broker):
            pass


def test_what_is_announced_and_does_not_come_takes_nothing() -> None:
    settings = {"queued.max.request.bytes": str(_MIB)}
    with running(settings=settings) as broker, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(broker.client()).send_raw(half_a_request(50 * _MIB))
        with broker.client() as good:
            good.send_raw(half_a_request(3 * _MIB) + bytes(3 * _MIB - 11))
            assert good.receive_frame()
        assert used(broker) < _MIB


def test_when_many_wait_all_of_them_are_served_in_the_end() -> None:
    settings = {"queued.max.request.bytes": "100000"}
    with running(settings=settings) as broker, ExitStack() as stack:
        clients = [stack.enter_context(broker.client()) for _ in range(20)]
        for client in clients:
            client.send_raw(half_a_request(60_000))
        for client in clients:
            client.send_raw(bytes(60_000 - 11))
        for client in clients:
            assert client.receive_frame()
        while used(broker):
            pass


def test_a_request_holds_its_memory_until_it_is_answered() -> None:
    with running(settings={"queued.max.request.bytes": str(64 * _MIB)}) as broker, ExitStack() as stack:
        first, second = (stack.enter_context(broker.client()) for _ in range(2))
        find_coordinator(first, "g")
        first.ask(JOIN_GROUP, 3, **joining("g", b""))
        second.send(JOIN_GROUP, 3, **joining("g", bytes(_MIB)))  # waits for the first to come again
        while used(broker) < _MIB:
            pass
        second.close()
        while used(broker):
            pass


def test_without_a_limit_nothing_is_counted() -> None:
    with running() as broker:
        assert broker.server.request_memory is None
