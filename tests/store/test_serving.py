"""A broker with a store, seen from outside: what is kept, who takes over, and what happens when the database fails."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from kohort.errors import ErrorCode
from tests.broker.wire_client import Closed, WireClient
from tests.cli.commands import run_main
from tests.postgresql import Postgresql
from tests.small_disk import MayNotMount, SmallDisk, small_disk
from tests.store.serving import Serving, serving
from tests.store.shared_server import new_database, own_server

COMMIT, FETCH_OFFSETS, JOIN, SYNC, HEARTBEAT, METADATA = 8, 9, 11, 14, 12, 3
FIND_COORDINATOR = 10


@pytest.fixture
def url() -> str:
    return new_database()


@pytest.fixture
def database() -> Iterator[Postgresql]:
    """A server that a test may stop."""
    with own_server(fsync="off") as server:
        yield server


def connected(address: str) -> WireClient:
    return WireClient(int(address.rpartition(":")[2]))


def prepared(client: WireClient) -> None:
    client.ask(METADATA, 8, topics=[{"name": "orders"}], allow_auto_topic_creation=True)
    client.ask(FIND_COORDINATOR, 2, key="g", key_type=0)


def commit(client: WireClient, offset: int, *, member: str = "", generation: int = -1) -> ErrorCode:
    partitions = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
    asked = {"group_id": "g", "generation_id_or_member_epoch": generation, "member_id": member}
    answer = client.ask(COMMIT, 6, **asked, topics=[{"name": "orders", "partitions": partitions}])
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def committed(client: WireClient) -> int:
    answer = client.ask(FETCH_OFFSETS, 5, group_id="g", topics=[{"name": "orders", "partition_indexes": [0]}])
    return int(answer.topics[0].partitions[0].committed_offset)


def until_well(address: str, ask: Callable[[WireClient], ErrorCode]) -> None:
    """As a client does: ask again, and connect again, for a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with connected(address) as client:
                while (error := ask(client)) is not ErrorCode.NONE and time.monotonic() < deadline:
                    assert error in _PASSING, error
                if error is ErrorCode.NONE:
                    return
        except (OSError, Closed):
            continue
    raise AssertionError("it was never so")


_PASSING = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
)


def joined(client: WireClient) -> tuple[str, int]:
    """A group of one member, and its generation."""
    protocols = [{"name": "range", "metadata": b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"}]
    asked = {"group_id": "g", "session_timeout": 30_000, "rebalance_timeout": 30_000}
    asked |= {"protocol_type": "consumer", "protocols": protocols}
    first = client.ask(JOIN, 5, **asked, member_id="")
    again = client.ask(JOIN, 5, **asked, member_id=first.member_id)
    mine = [{"member_id": again.member_id, "assignment": b"mine"}]
    known = {"group_id": "g", "generation_id": again.generation_id, "member_id": again.member_id}
    assert client.ask(SYNC, 3, **known, assignments=mine).assignment == b"mine"
    return again.member_id, again.generation_id


def heartbeat(client: WireClient, member: str, generation: int) -> ErrorCode:
    answer = client.ask(HEARTBEAT, 3, group_id="g", generation_id=generation, member_id=member)
    return ErrorCode(answer.error_code)


def heartbeat_for_ever(client: WireClient, member: str, generation: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert heartbeat(client, member, generation) in (ErrorCode.NONE, *_PASSING)


@contextmanager
def room() -> Iterator[SmallDisk]:
    """A disk that the server's own user may enter."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        try:
            with small_disk(Path(directory, "small"), 24 * 1024) as disk:
                disk.place.chmod(0o755)
                yield disk
        except MayNotMount as reason:
            pytest.skip(f"NOT TESTED: {reason}")


@contextmanager
def following(first: Serving, url: str) -> Iterator[tuple[str, Serving]]:
    """Another broker, which comes when the first one has the store, and the address of that."""
    address = first.ready()
    with serving(url, broker_id=2) as second:
        yield address, second


class TestABrokerThatGoes:
    def test_leaves_its_groups_to_the_one_that_waits_with_members_and_generation(self, url: str) -> None:
        with serving(url, broker_id=1) as first, following(first, url) as (first_address, second):
            with connected(first_address) as client:
                prepared(client)
                member, generation = joined(client)
                assert commit(client, 41, member=member, generation=generation) is ErrorCode.NONE
            first.kill()
            address = second.ready()
            assert "waiting: broker 1 has the store" in second.said()
            until_well(address, lambda client: heartbeat(client, member, generation))
            with connected(address) as client:
                assert committed(client) == 41
                assert commit(client, 42, member=member, generation=generation) is ErrorCode.NONE
            assert second.stop() == 0

    def test_that_ends_well_is_followed_at_once(self, url: str) -> None:
        with serving(url, broker_id=1, lease_ms=600_000) as first:
            with connected(first.ready()) as client:
                prepared(client)
                assert commit(client, 41) is ErrorCode.NONE
            with serving(url, broker_id=2) as second:
                assert first.stop() == 0
                with connected(second.ready()) as client:
                    assert committed(client) == 41

    def test_that_waits_can_be_stopped(self, url: str) -> None:
        with serving(url, broker_id=1) as first, following(first, url) as (_, second):
            assert _said(second, "waiting: broker 1")
            assert second.stop() == 0


def _said(broker: Serving, text: str) -> bool:
    deadline = time.monotonic() + 60
    while text not in broker.said() and broker.is_alive and time.monotonic() < deadline:
        pass
    return text in broker.said()


class TestADatabase:
    @pytest.mark.parametrize("how", ["stopped", "killed"])
    def test_that_was_away_for_longer_than_the_lease_loses_nothing_and_no_member(
        self, database: Postgresql, how: str
    ) -> None:
        with serving(database.url, lease_ms=1_000) as broker:
            address = broker.ready()
            with connected(address) as client:
                prepared(client)
                member, generation = joined(client)
                assert commit(client, 41, member=member, generation=generation) is ErrorCode.NONE
                if how == "stopped":
                    database.stop()
                else:
                    database.kill()
                with pytest.raises((OSError, Closed)):  # the broker does not answer what may not be true any more
                    heartbeat_for_ever(client, member, generation)
            database.start()
            until_well(address, lambda client: heartbeat(client, member, generation))
            with connected(address) as client:
                assert committed(client) == 41
                assert commit(client, 42, member=member, generation=generation) is ErrorCode.NONE
            assert broker.stop() == 0

    def test_that_was_set_back_ends_the_broker_with_an_explanation(self, database: Postgresql, tmp_path: Path) -> None:
        with serving(database.url, lease_ms=2_000) as broker:
            address = broker.ready()
            with connected(address) as client:
                prepared(client)
                assert commit(client, 1) is ErrorCode.NONE
            database.stop()
            database.copied_to(tmp_path / "earlier")
            database.start()
            until_well(address, lambda client: commit(client, 2))
            database.stop()
            database.put_back(tmp_path / "earlier")
            database.start()
            assert broker.wait() == 1
            assert "set back to an earlier state" in broker.said()
            assert "Traceback" not in broker.said()

    def test_without_room_refuses_commits_and_goes_on_when_there_is(self, database: Postgresql) -> None:
        with room() as disk:
            disk.data.mkdir()
            shutil.chown(disk.data, "postgres")
            space = disk.data
            with database.connect() as connection:
                connection.execute(f"CREATE TABLESPACE small LOCATION '{space}'".encode())
                connection.execute("CREATE DATABASE full_one TABLESPACE small")
            with serving(database.url_of("kohort", database="full_one"), lease_ms=5_000) as broker:
                address = broker.ready()
                with connected(address) as client:
                    prepared(client)
                    assert commit(client, 1) is ErrorCode.NONE
                acknowledged = 1
                disk.fill()
                with connected(address) as client:
                    for offset in range(2, 5_000):
                        if commit(client, offset) is not ErrorCode.NONE:
                            break
                        acknowledged = offset
                    else:
                        raise AssertionError("it was never full")
                    assert acknowledged <= committed(client) + 1
                disk.free()
                until_well(address, lambda client: commit(client, 10_000))
                with connected(address) as client:
                    assert committed(client) == 10_000
                assert broker.stop() == 0


class TestWhatAUserGetsWrong:
    def test_a_password_among_the_arguments_is_refused(self) -> None:
        told = run_main("serve", "--store", "postgresql://me:secret@127.0.0.1:1/x")
        assert told.code == 2
        assert "PGPASSWORD" in told.stderr
        assert "secret" not in told.stderr

    @pytest.mark.parametrize("url", ["nonsense", "http://localhost/x"])
    def test_what_is_no_address_is_refused(self, url: str) -> None:
        told = run_main("serve", "--store", url)
        assert (told.code, told.stdout) == (2, "")
        assert "postgresql://USER@HOST:PORT/DATABASE" in told.stderr

    def test_a_database_that_is_not_there_is_told_in_one_line(self) -> None:
        told = run_main("serve", "--store", "postgresql://me@127.0.0.1:1/x")
        assert told.code == 1
        assert told.stderr.startswith("kohort: postgresql://127.0.0.1:1/x: ")
        assert told.stderr.count("\n") == 1

    def test_a_store_of_another_format_is_left_alone(self, url: str) -> None:
        with serving(url) as broker:
            broker.ready()
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE kohort.store SET format = 99")
        told = run_main("serve", "--store", url)
        assert told.code == 1
        assert "format" in told.stderr

    @pytest.mark.parametrize("mode", ["os", "interval"])
    def test_nothing_is_acknowledged_that_the_database_does_not_have(self, mode: str) -> None:
        told = run_main("serve", "--store", "postgresql://me@127.0.0.1:1/x", "--set", f"log.flush.mode={mode}")
        assert told.code == 2
        assert "can only be always" in told.stderr

    @pytest.mark.parametrize("more", [["--memory"], ["--data", "d"]])
    def test_one_place_is_enough(self, url: str, more: list[str]) -> None:
        assert run_main("serve", "--store", url, *more).code == 2
