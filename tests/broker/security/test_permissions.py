"""Every API needs what Kafka's needs, says what Kafka's says to who may not, and gives nothing away."""

from collections.abc import Iterator

import pytest

from kohort.broker.api import all_apis
from kohort.broker.security.acl import CLUSTER_NAME, Acl, PermissionType, ResourceType
from kohort.broker.security.authorizer import Authorizer
from kohort.broker.security.permission import DESCRIBE_TOPIC, Permission
from kohort.broker.security.principal import Principal
from kohort.errors import ErrorCode
from tests.broker.data_plane import batch, make_topic, produce_request
from tests.broker.group_clients import FIND_COORDINATOR, OFFSET_COMMIT
from tests.broker.running import Running
from tests.broker.security.cases import CASES, MISSING, REFUSALS, THERE, Case, Names, committed, refusals_in
from tests.broker.security.somebody import ROOT, authorizer_of, authorizing, create, entry, somebody
from tests.broker.wire_client import WireClient

PRODUCE, DELETE_TOPICS, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN = 0, 20, 22, 24
ONE_PARTITION = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
WITHOUT_PERMISSION = {17, 18, 36}
"""SaslHandshake, ApiVersions, SaslAuthenticate: for whoever comes."""


@pytest.fixture
def broker() -> Iterator[Running]:
    """A topic with a record, a group with an offset, a transactional id with a partition in its transaction."""
    with authorizing(**ONE_PARTITION) as broker, somebody(broker, ROOT) as root:
        make_topic(broker, THERE.topic)
        root.ask(PRODUCE, 8, **produce_request(batch("a"), topic=THERE.topic))
        for kind, key in enumerate((THERE.group, THERE.transactional_id)):
            assert root.ask(FIND_COORDINATOR, 3, key=key, key_type=kind).error_code == ErrorCode.NONE
        root.ask(OFFSET_COMMIT, 7, group_id=THERE.group, generation_id_or_member_epoch=-1, topics=committed(THERE))
        producer = root.ask(INIT_PRODUCER_ID, 2, transactional_id=THERE.transactional_id, transaction_timeout=60_000)
        root.ask(
            ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=THERE.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[{"name": THERE.topic, "partitions": [0]}],
        )
        yield broker


def allow(broker: Running, *permissions: Permission, names: Names = THERE) -> None:
    create(broker, *(allowing(permission, names) for permission in permissions))


def allowing(permission: Permission, names: Names) -> Acl:
    named = {
        ResourceType.TOPIC: names.topic,
        ResourceType.GROUP: names.group,
        ResourceType.TRANSACTIONAL_ID: names.transactional_id,
        ResourceType.CLUSTER: CLUSTER_NAME,
    }
    return entry("alice", permission.operation, permission.resource_type, named[permission.resource_type])


def ask(client: WireClient, case: Case, names: Names = THERE) -> object:
    return client.ask(case.api_key, case.version, **case.request(names))


def told(answer: object) -> str:
    """What stands in an answer, without what is called what."""
    text = repr(answer)
    for there, missing in zip(THERE, MISSING, strict=True):
        text = text.replace(there, "NAME").replace(missing, "NAME")
    return text


def params(cases: list[Case]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases]


LACKING = [
    pytest.param(case, missing, names, id=f"{case.name}-{missing.operation.name}-{missing.resource_type.name}-{where}")
    for case in CASES
    for missing in case.needs
    for where, names in (("there", THERE), ("missing", MISSING))
    if case.asks_for(missing, names)
]


@pytest.mark.parametrize("case", params(CASES))
@pytest.mark.parametrize("names", [THERE, MISSING], ids=["there", "missing"])
def test_who_has_what_is_needed_is_not_refused(broker: Running, case: Case, names: Names) -> None:
    allow(broker, *case.needs, names=names)
    with somebody(broker, "alice") as client:
        assert refusals_in(ask(client, case, names)) == set()


@pytest.mark.parametrize(("case", "missing", "names"), LACKING)
def test_who_lacks_one_permission_is_told_so(broker: Running, case: Case, missing: Permission, names: Names) -> None:
    allow(broker, *(one for one in case.needs if one is not missing), names=names)
    with somebody(broker, "alice") as client:
        refusal = case.refusal(missing)
        assert refusals_in(ask(client, case, names)) == (set() if refusal is None else {refusal})


@pytest.mark.parametrize(("case", "missing", "names"), LACKING)
def test_a_permission_that_is_denied_is_as_one_that_is_missing(
    broker: Running, case: Case, missing: Permission, names: Names
) -> None:
    refusal = case.refusal(missing)
    allow(broker, *case.needs, names=names)
    create(broker, allowing(missing, names)._replace(permission=PermissionType.DENY))
    with somebody(broker, "alice") as client:
        assert refusals_in(ask(client, case, names)) == (set() if refusal is None else {refusal})


@pytest.mark.parametrize("case", params(CASES))
def test_who_may_do_nothing_does_not_learn_what_is_there(broker: Running, case: Case) -> None:
    with somebody(broker, "nobody") as client:
        assert told(ask(client, case, THERE)) == told(ask(client, case, MISSING))
        text = repr(ask(client, case, MISSING))
        assert not any(name in text for name in THERE)


@pytest.mark.parametrize("case", params(CASES))
def test_who_may_do_nothing_changes_nothing(broker: Running, case: Case) -> None:
    def state() -> object:
        topics = {topic.name: topic for topic in broker.broker.topics}
        ends = {name: broker.broker.topics.log(name, 0).log_end_offset for name in topics}  # type: ignore[union-attr]
        groups = broker.broker.groups.handle_list_groups()
        return topics, ends, groups, list(authorizer_of(broker)._rules), broker.broker.config

    before = broker.on_loop(state)
    with somebody(broker, "nobody") as client:
        ask(client, case, THERE)
        ask(client, case, MISSING)
    assert broker.on_loop(state) == before


def test_every_api_is_here() -> None:
    assert {case.api_key for case in CASES} == all_apis().keys() - WITHOUT_PERMISSION


class Listening(Authorizer):
    """Keeps what it is asked for."""

    asked: set[Permission]

    def may(self, principal: Principal, client_host: str, permission: Permission, name: str = CLUSTER_NAME) -> bool:
        self.asked.add(permission)
        return super().may(principal, client_host, permission, name)

    def may_somewhere(self, principal: Principal, client_host: str, permission: Permission) -> bool:
        self.asked.add(permission)
        return super().may_somewhere(principal, client_host, permission)


@pytest.mark.parametrize("api_key", sorted({case.api_key for case in CASES}))
def test_an_api_asks_for_the_permissions_that_it_names_and_no_others(broker: Running, api_key: int) -> None:
    asked, api = _asked(broker, [case for case in CASES if case.api_key == api_key]), all_apis()[api_key]
    by_id = {DESCRIBE_TOPIC} if api_key == DELETE_TOPICS else set()  # by a name DELETE is all that is needed
    assert asked | by_id == {*api.permissions, *api.tells}


def _asked(broker: Running, cases: list[Case]) -> set[Permission]:
    listening = Listening(broker.broker.security_log, [Principal("User", ROOT)], allows_unless_found=False)
    listening.asked = set()
    broker.on_loop(lambda: setattr(broker.broker, "authorizer", listening))
    for case in cases:
        with somebody(broker, "nobody") as nobody, somebody(broker, ROOT) as root:
            ask(nobody, case, THERE)
            ask(root, case, MISSING)
            ask(root, case, THERE)
    return listening.asked


def test_refusals_are_found_where_answers_tell_them(broker: Running) -> None:
    """The other tests would see nothing if this did not work."""
    with somebody(broker, "nobody") as client:
        seen = {refusal for case in CASES for refusal in refusals_in(ask(client, case))}
    assert seen == REFUSALS
