"""Requests that begin and do not go on, and requests that are slow but do (slow-loris)."""

import struct
import time

import pytest

from kohort.broker.security.slow_requests import LEAST_PROGRESS, SlowRequests
from tests.broker.running import running
from tests.broker.wire_client import Closed, WireClient, request_bytes

METADATA = 3
PATIENCE_S = 30.0
SETTINGS = {"request.receive.timeout.ms": "300"}


class Line:
    """A connection as far as it counts here."""

    def __init__(self) -> None:
        self.is_read = True
        self.received = 0
        self.reasons: list[str] = []

    def drop(self, reason: str) -> None:
        self.reasons.append(reason)


class TestWhoIsToBlame:
    def setup_method(self) -> None:
        self.now = 0.0
        self.slow = SlowRequests(lambda: self.now)
        self.line = Line()

    def pass_to(self, now: float, received: int) -> bool:
        """Whether the connection is still there then."""
        self.now, self.line.received = now, received
        self.slow.look(30)
        return not self.line.reasons

    def test_a_byte_now_and_then_does_not_count_as_life(self) -> None:
        self.slow.begin(self.line)
        assert self.pass_to(29, 29)
        assert not self.pass_to(30, 30)
        assert self.line.reasons == ["a request has begun and not gone on for 30 s"]
        assert (len(self.slow), self.slow.dropped) == (0, 1)

    def test_a_large_request_may_take_its_time(self) -> None:
        self.slow.begin(self.line)
        for times in range(1, 100):
            assert self.pass_to(30.0 * times, LEAST_PROGRESS * times)
        assert not self.pass_to(30 * 100, LEAST_PROGRESS * 99 + 1)

    def test_while_we_do_not_read_nobody_is_blamed(self) -> None:
        self.slow.begin(self.line)
        self.line.is_read = False
        assert self.pass_to(300, 10)
        self.line.is_read = True
        assert self.pass_to(329, 10)
        assert not self.pass_to(330, 10)

    def test_a_request_that_is_there_is_not_slow(self) -> None:
        self.slow.begin(self.line)
        self.slow.end(self.line)
        assert self.pass_to(300, 10)


class TestOnSockets:
    def test_who_sends_a_byte_now_and_then_is_let_go_of(self) -> None:
        with running(settings=SETTINGS) as broker, broker.client() as other, broker.client() as slow:
            assert slow.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
            slow.send_raw(struct.pack(">i", 100_000_000))
            with pytest.raises((Closed, ConnectionError)):
                _drip(slow)
            assert other.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
            assert broker.server.slow_requests.dropped == 1

    def test_a_size_that_is_never_whole_is_slow_too(self) -> None:
        with running(settings=SETTINGS) as broker, broker.client() as slow:
            assert slow.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
            slow.send_raw(b"\0\0")
            with pytest.raises(Closed):
                slow.receive_frame()

    def test_requests_that_come_in_pieces_are_served_for_ever(self) -> None:
        """Each has its own time, however the pieces are cut."""
        with running(settings=SETTINGS) as broker, broker.client() as client:
            frame = request_bytes(METADATA, 4, 1, "pieces", {"topics": []})
            stream = struct.pack(">i", len(frame)) + frame
            client.send_raw(stream[:-5])
            until = time.monotonic() + 1
            served = 0
            while time.monotonic() < until:
                client.send_raw(stream[-5:] + stream[:-5])  # the end of one and the begin of the next
                assert client.receive_frame()[:4] == frame[4:8]
                served += 1
            assert served > 3
            assert broker.server.slow_requests.dropped == 0


def _drip(client: WireClient) -> None:
    """Until the broker has had enough, which it has long before all is there."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        client.send_raw(b"x")
        if client.has_answer():
            client.receive_frame()
