"""DescribeAcls, CreateAcls and DeleteAcls answer as Kafka's do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security.somebody import ROOT, authorizing, somebody
from tests.broker.wire_client import WireClient

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
VERSIONS = [1, 2, 3]


@pytest.fixture
def broker() -> Iterator[Running]:
    with authorizing() as broker:
        yield broker


@pytest.fixture
def root(broker: Running) -> Iterator[WireClient]:
    with somebody(broker, ROOT) as client:
        yield client


def acl(name: str = "orders", **others: Any) -> dict[str, Any]:
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
        **others,
    }


def wanted(**others: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **others,
    }


def create(client: WireClient, *acls: dict[str, Any], version: int = 3) -> list[ErrorCode]:
    return [result.error_code for result in client.ask(CREATE_ACLS, version, creations=acls).results]


def describe(client: WireClient, version: int = 3, **filters: Any) -> list[tuple[Any, ...]]:
    answer = client.ask(DESCRIBE_ACLS, version, **wanted(**filters))
    assert answer.error_code == ErrorCode.NONE, answer
    return [
        (resource.resource_type, resource.resource_name, resource.pattern_type, *row(one))
        for resource in answer.resources
        for one in resource.acls
    ]


def row(one: Any) -> tuple[Any, ...]:
    return one.principal, one.host, one.operation, one.permission_type


def delete(client: WireClient, *filters: dict[str, Any], version: int = 3) -> list[list[str]]:
    """The names of what has gone, by filter."""
    results = client.ask(DELETE_ACLS, version, filters=filters).filter_results
    assert {result.error_code for result in results} == {ErrorCode.NONE}
    return [sorted(one.resource_name for one in result.matching_acls) for result in results]


class TestWithoutAnAuthorizer:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_security_is_disabled(self, version: int) -> None:
        with running() as broker, broker.client() as client:
            described = client.ask(DESCRIBE_ACLS, version, **wanted())
            assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, ())
            created = client.ask(CREATE_ACLS, version, creations=[acl(), acl()])
            assert [one.error_code for one in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
            deleted = client.ask(DELETE_ACLS, version, filters=[wanted()])
            assert [one.error_code for one in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]
            assert all(text for text in (described.error_message, created.results[0].error_message))


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_come_and_are_told_and_go(root: WireClient, version: int) -> None:
    assert describe(root, version) == []
    both = [acl(), acl("ord", resource_pattern_type=PREFIXED, permission_type=DENY, host="10.0.0.1")]
    assert create(root, *both, version=version) == [ErrorCode.NONE] * 2
    assert sorted(describe(root, version)) == [
        (TOPIC, "ord", PREFIXED, "User:alice", "10.0.0.1", READ, DENY),
        (TOPIC, "orders", LITERAL, "User:alice", "*", READ, ALLOW),
    ]
    assert delete(root, wanted(resource_name_filter="orders"), version=version) == [["orders"]]
    assert [name for _, name, *_ in describe(root, version)] == ["ord"]


def test_entries_of_one_resource_are_told_together(root: WireClient) -> None:
    create(root, acl(), acl("payments"), acl(operation=WRITE), acl(resource_pattern_type=PREFIXED))
    resources = root.ask(DESCRIBE_ACLS, 3, **wanted()).resources
    told = {(one.resource_name, one.pattern_type): [entry.operation for entry in one.acls] for one in resources}
    assert told == {("orders", LITERAL): [READ, WRITE], ("payments", LITERAL): [READ], ("orders", PREFIXED): [READ]}


def test_resources_of_every_type_are_kept(root: WireClient) -> None:
    types = {
        TOPIC: "t",
        GROUP: "g",
        CLUSTER: "kafka-cluster",
        TRANSACTIONAL_ID: "x",
        DELEGATION_TOKEN: "d",
        USER: "User:bob",
    }
    acls = [acl(name, resource_type=kind, operation=DESCRIBE) for kind, name in types.items()]
    assert create(root, *acls) == [ErrorCode.NONE] * len(types)
    assert {kind: name for kind, name, *_ in describe(root)} == types


def test_an_entry_that_is_there_already_is_no_error_and_not_twice(root: WireClient) -> None:
    assert create(root, acl(), acl()) == [ErrorCode.NONE] * 2
    assert create(root, acl()) == [ErrorCode.NONE]
    assert len(describe(root)) == 1


def test_one_that_cannot_be_does_not_keep_the_others_from_being(root: WireClient) -> None:
    bad = ErrorCode.INVALID_REQUEST
    asked = [
        acl(""),
        acl(resource_type=ANY),
        acl(resource_type=0),
        acl("my-cluster", resource_type=CLUSTER),
        acl(resource_pattern_type=ANY),
        acl(resource_pattern_type=MATCH),
        acl(operation=ANY),
        acl(operation=99),
        acl(permission_type=ANY),
        acl(principal="alice"),
        acl(host="example.com"),
        acl("fine"),
    ]
    assert create(root, *asked) == [*[bad] * (len(asked) - 1), ErrorCode.NONE]
    assert [name for _, name, *_ in describe(root)] == ["fine"]


def test_filters_for_all_that_fits_a_name(root: WireClient) -> None:
    create(root, acl(), acl("ord", resource_pattern_type=PREFIXED), acl("*"), acl("payments"))

    def found(pattern_type: int) -> list[str]:
        filters = {"resource_name_filter": "orders", "pattern_type_filter": pattern_type}
        return sorted(name for _, name, *_ in describe(root, **filters))

    assert found(MATCH) == ["*", "ord", "orders"]
    assert found(ANY) == found(LITERAL) == ["orders"]
    assert found(PREFIXED) == []


def test_a_filter_that_means_nothing_is_refused(root: WireClient) -> None:
    create(root, acl())
    for wrong in ({"resource_type_filter": 0}, {"pattern_type_filter": 9}, {"operation": -1}, {"permission_type": 4}):
        answer = root.ask(DESCRIBE_ACLS, 3, **wanted(**wrong))
        assert (answer.error_code, answer.resources) == (ErrorCode.INVALID_REQUEST, ())
    results = root.ask(DELETE_ACLS, 3, filters=[wanted(operation=0), wanted(operation=READ)]).filter_results
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert describe(root) == []


def test_what_fits_several_filters_goes_once(root: WireClient) -> None:
    create(root, acl(), acl("payments"))
    exactly = wanted(
        resource_type_filter=TOPIC,
        resource_name_filter="orders",
        pattern_type_filter=LITERAL,
        principal_filter="User:alice",
        host_filter="*",
        operation=READ,
        permission_type=ALLOW,
    )
    assert delete(root, exactly, wanted(), exactly) == [["orders"], ["payments"], []]


def test_there_can_only_be_so_many(root: WireClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.broker.security.authorizer.MOST_ACLS", 3)
    assert create(root, acl("a"), acl("b")) == [ErrorCode.NONE] * 2
    assert create(root, acl("c"), acl("d"), acl("a"), acl("c")) == [
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert len(describe(root)) == 3


def test_only_so_many_filters_look_at_everything(root: WireClient) -> None:
    results = root.ask(DELETE_ACLS, 3, filters=[wanted()] * 101).filter_results
    assert [result.error_code for result in results] == [ErrorCode.NONE] * 100 + [ErrorCode.INVALID_REQUEST]


def test_a_change_counts_before_it_is_answered_and_outlives_the_broker(tmp_path: Path) -> None:
    with authorizing(tmp_path) as broker, somebody(broker, ROOT) as root, somebody(broker, "alice") as alice:
        assert alice.ask(DESCRIBE_ACLS, 3, **wanted()).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        create(root, acl("kafka-cluster", resource_type=CLUSTER, operation=DESCRIBE))
        assert len(describe(alice)) == 1
        create(root, acl("kafka-cluster", resource_type=CLUSTER, operation=ALL, permission_type=DENY))
        assert alice.ask(DESCRIBE_ACLS, 3, **wanted()).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with authorizing(tmp_path) as broker, somebody(broker, ROOT) as root, somebody(broker, "alice") as alice:
        assert len(describe(root)) == 2
        assert alice.ask(DESCRIBE_ACLS, 3, **wanted()).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
