"""Users that the broker keeps: added, described and deleted by requests, and safe on the disk (KIP-554)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security.logins import (
    ALTER_USERS,
    DESCRIBE_USERS,
    OPEN_AND_SASL,
    SHA_256,
    SHA_512,
    ScramClient,
    add_users,
    at_sasl,
    log_in_by_scram,
    upsertion,
)

DESCRIBE_CONFIGS, FETCH = 32, 1


@pytest.fixture
def broker() -> Iterator[Running]:
    with running(settings=OPEN_AND_SASL) as broker:
        yield broker


def alter(broker: Running, *, deletions: Any = (), upsertions: Any = ()) -> dict[str, ErrorCode]:
    with broker.client() as client:
        answer = client.ask(ALTER_USERS, 0, deletions=deletions, upsertions=upsertions)
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


def described(broker: Running, *users: str) -> dict[str, Any]:
    with broker.client() as client:
        answer = client.ask(DESCRIBE_USERS, 0, users=[{"name": user} for user in users] if users else None)
    assert answer.error_code == ErrorCode.NONE
    return {
        one.user: {info.mechanism: info.iterations for info in one.credential_infos} or ErrorCode(one.error_code)
        for one in answer.results
    }


def can_log_in(broker: Running, user: str, password: str, mechanism: str = SHA_256) -> bool:
    with at_sasl(broker) as client:
        return log_in_by_scram(client, ScramClient(mechanism, user, password)).error_code == ErrorCode.NONE


def test_a_user_comes_changes_and_goes(broker: Running) -> None:
    assert described(broker) == {}
    assert alter(broker, upsertions=[upsertion("alice", "one")]) == {"alice": ErrorCode.NONE}
    assert described(broker, "alice") == {"alice": {1: 4096}}
    assert can_log_in(broker, "alice", "one")
    assert not can_log_in(broker, "alice", "one", SHA_512)

    assert alter(broker, upsertions=[upsertion("alice", "two", iterations=16_384)]) == {"alice": ErrorCode.NONE}
    assert (can_log_in(broker, "alice", "one"), can_log_in(broker, "alice", "two")) == (False, True)
    assert described(broker, "alice") == {"alice": {1: 16_384}}

    assert alter(broker, deletions=[{"name": "alice", "mechanism": 1}]) == {"alice": ErrorCode.NONE}
    assert not can_log_in(broker, "alice", "two")
    assert described(broker) == {}


def test_a_user_may_have_a_password_for_each_mechanism(broker: Running) -> None:
    both = [upsertion("alice", "one", SHA_256), upsertion("alice", "two", SHA_512, iterations=8192)]
    assert alter(broker, upsertions=both) == {"alice": ErrorCode.NONE}
    assert described(broker) == {"alice": {1: 4096, 2: 8192}}
    assert alter(broker, deletions=[{"name": "alice", "mechanism": 1}]) == {"alice": ErrorCode.NONE}
    assert described(broker) == {"alice": {2: 8192}}
    assert can_log_in(broker, "alice", "two", SHA_512)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"name": ""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"mechanism": 0}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"mechanism": 3}, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ({"iterations": 4095}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": 16_385}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"iterations": -1}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salt": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ({"salted_password": b""}, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_what_cannot_be_kept_is_refused_and_the_rest_is_kept(
    broker: Running, changed: dict[str, Any], error: ErrorCode
) -> None:
    bad = {**upsertion("alice", "one"), **changed}
    answer = alter(broker, upsertions=[bad, upsertion("bob", "two")])
    assert answer == {changed.get("name", "alice"): error, "bob": ErrorCode.NONE}
    assert described(broker) == {"bob": {1: 4096}}


def test_what_is_wrong_with_one_password_of_a_user_is_wrong_with_all(broker: Running) -> None:
    good, bad = upsertion("alice", "one", SHA_512), upsertion("alice", "one", SHA_256, iterations=1)
    assert alter(broker, upsertions=[good, bad]) == {"alice": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert described(broker) == {}


def test_nothing_is_altered_twice_in_one_request(broker: Running) -> None:
    add_users(broker, {"alice": "one"}, SHA_256)
    twice = [upsertion("bob", "one"), upsertion("bob", "two")]
    deletion = [{"name": "alice", "mechanism": 1}]
    answer = alter(broker, deletions=deletion, upsertions=[*twice, upsertion("alice", "two")])
    assert answer == {"alice": ErrorCode.DUPLICATE_RESOURCE, "bob": ErrorCode.DUPLICATE_RESOURCE}
    assert can_log_in(broker, "alice", "one")


def test_who_is_not_there_can_be_neither_deleted_nor_described(broker: Running) -> None:
    add_users(broker, {"alice": "one"}, SHA_256)
    assert alter(broker, deletions=[{"name": "bob", "mechanism": 1}]) == {"bob": ErrorCode.RESOURCE_NOT_FOUND}
    assert alter(broker, deletions=[{"name": "alice", "mechanism": 2}]) == {"alice": ErrorCode.RESOURCE_NOT_FOUND}
    assert described(broker, "alice", "bob") == {"alice": {1: 4096}, "bob": ErrorCode.RESOURCE_NOT_FOUND}
    assert described(broker, "alice", "alice") == {"alice": ErrorCode.DUPLICATE_RESOURCE}


def test_users_outlive_the_broker_and_no_password_is_on_the_disk(tmp_path: Path) -> None:
    with running(tmp_path, OPEN_AND_SASL) as broker:
        add_users(broker, {"alice": "a very secret password", "bob": "x"})
        alter(broker, deletions=[{"name": "bob", "mechanism": 1}, {"name": "bob", "mechanism": 2}])
    with running(tmp_path, OPEN_AND_SASL) as broker:
        assert described(broker) == {"alice": {1: 4096, 2: 4096}}
        assert can_log_in(broker, "alice", "a very secret password", SHA_512)
        assert not can_log_in(broker, "bob", "x")
    salted = upsertion("alice", "a very secret password")["salted_password"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"very secret" not in path.read_bytes()
            assert salted not in path.read_bytes()


def test_who_is_logged_in_stays_so_when_his_password_goes(broker: Running) -> None:
    add_users(broker, {"alice": "one"}, SHA_256)
    with at_sasl(broker) as client:
        assert log_in_by_scram(client, ScramClient(SHA_256, "alice", "one")).error_code == ErrorCode.NONE
        assert alter(broker, deletions=[{"name": "alice", "mechanism": 1}]) == {"alice": ErrorCode.NONE}
        assert client.ask(3, 9, topics=[]).cluster_id == "kohort"
