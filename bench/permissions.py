"""What permissions cost: commits through a whole broker, without sockets, with and without an authorizer.

python -m bench.permissions prints the table of these lines alone.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any, cast

from bench.rows import Row, bounded, show, told
from kohort.broker.broker import Broker
from kohort.broker.connection import Connection
from kohort.broker.response_writer import writer_of
from kohort.broker.schemas import load_request_schema
from kohort.broker.security.acl import Acl, Operation, PatternType, PermissionType, ResourceType
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.clock import SystemClock
from kohort.config import FlushMode
from kohort.errors import ErrorCode
from kohort.log.files import Files
from kohort.log.simulated_files import SimulatedFiles

ACLS = 1_000
PARTITIONS = 10
_COMMITS, _ROUNDS = 3_000, 7
_OFFSET_COMMIT, _VERSION = 8, 8
TOPIC, GROUP = "a-topic-of-usual-length", "a-group-of-usual-length"
_AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}


class Transport(asyncio.Transport):
    """Takes answers, and remembers the last."""

    last = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002
        return ("127.0.0.1", 50_000)

    def write(self, data: Any) -> None:
        self.last = bytes(data)


def measure() -> list[Row]:
    """Processor time of one commit of 10 partitions of one topic."""
    rows = []
    for way in ("the general way", "the short way"):
        off, on = _measured(is_short=way == "the short way")
        rows.append(told(f"a commit of {PARTITIONS} partitions, {way}, no authorizer", f"{off:.1f} µs"))
        rows.append(told(f"... with {ACLS:,} entries of access control lists", f"{on:.1f} µs"))
        if way == "the short way":
            rows.append(bounded("... more, µs", on - off, 5, at_most=True))
    return rows


def _measured(*, is_short: bool) -> tuple[float, float]:
    """The two in turns: a machine that is busy for a while is so for both."""
    with serving({}) as plain, serving(_AUTHORIZER) as authorizing:
        _add_entries(authorizing)
        committing = [_committing(broker, is_short=is_short) for broker in (plain, authorizing)]
        times: tuple[list[float], list[float]] = ([], [])
        gc.disable()
        try:
            for _ in range(_ROUNDS):
                for found, commit in zip(times, committing, strict=True):
                    found.append(commit())
        finally:
            gc.enable()
        return min(times[0]), min(times[1])


@contextmanager
def serving(settings: dict[str, str], files: Files | None = None, data: str = "/memory") -> Iterator[Broker]:
    """In memory, unless other files are given."""
    loop = asyncio.new_event_loop()
    config = BrokerConfig(data=data, log_flush_mode=FlushMode.OS)
    broker = Broker(with_settings(config, settings), files or SimulatedFiles(), SystemClock(), loop, on_failure=_fail)
    broker.turns.never_end()  # nothing runs on this loop
    broker.start(0)
    broker.ensure_offsets_topic()
    broker.create_topic(TOPIC, PARTITIONS, {})
    try:
        yield broker
    finally:
        broker.stop()
        loop.run_until_complete(asyncio.sleep(0))  # what was cancelled ends
        loop.close()


def _fail(failure: Exception) -> None:
    raise failure


def _add_entries(broker: Broker) -> None:
    """Of many users, topics and groups, some for prefixes; among them those that count here."""
    acls = [
        _entry(f"User:{number}", ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL) for number in range(600)
    ]
    acls += [
        _entry(f"User:{number}", ResourceType.GROUP, f"group-{number}", PatternType.LITERAL) for number in range(300)
    ]
    acls += [
        _entry("User:*", ResourceType.TOPIC, "a-topic" + "-" * number, PatternType.PREFIXED) for number in range(98)
    ]
    acls.append(_entry("User:ANONYMOUS", ResourceType.TOPIC, "a-topic-of", PatternType.PREFIXED))
    acls.append(_entry("User:ANONYMOUS", ResourceType.GROUP, GROUP, PatternType.LITERAL))
    heard: list[ErrorCode] = []
    assert broker.authorizer is not None
    assert len(acls) == ACLS
    broker.authorizer.create(acls, heard.append)
    assert heard == [ErrorCode.NONE]


def _entry(principal: str, resource_type: ResourceType, name: str, pattern: PatternType) -> Acl:
    return Acl(resource_type, pattern, name, principal, "*", Operation.READ, PermissionType.ALLOW)


def _committing(broker: Broker, *, is_short: bool) -> Callable[[], float]:
    """Does a round of commits; tells the microseconds of one."""
    if is_short:
        broker.short_way.open()
    else:
        broker.short_way.count = lambda: None  # it would open by itself
    server = Server(broker, broker.loop)
    transport = Transport()
    connection = Connection(server)
    connection.connection_made(transport)
    request = frame()

    def commit() -> float:
        began = process_time()
        for _ in range(_COMMITS):
            connection.data_received(request)
            connection.write_out()
        took = process_time() - began
        assert transport.last.count(b"\0\0\0") >= PARTITIONS  # no error of any partition
        assert not sum(server.traffic.apis[_OFFSET_COMMIT].errors.values())
        return took / _COMMITS * 1e6

    commit()
    return commit


def frame() -> bytes:
    body = bytearray()
    partitions = [
        {"partition_index": number, "committed_offset": 1_000_000 + number, "committed_leader_epoch": 0}
        | {"committed_metadata": ""}
        for number in range(PARTITIONS)
    ]
    values = {
        "group_id": GROUP,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": TOPIC, "partitions": partitions}],
    }
    writer_of(cast(Any, load_request_schema(_OFFSET_COMMIT, _VERSION)))(body, values)
    client = b"bench"
    head = _OFFSET_COMMIT.to_bytes(2, "big") + _VERSION.to_bytes(2, "big") + (7).to_bytes(4, "big")
    whole = head + len(client).to_bytes(2, "big") + client + b"\0" + body
    return len(whole).to_bytes(4, "big") + whole


if __name__ == "__main__":
    show(measure())
