"""Clients that know nothing of these tests keep entries, and meet what they say."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.data_plane import make_topic
from tests.broker.running import Running
from tests.broker.security.somebody import PASSWORD, ROOT, authorizing

PATIENCE_S = 60.0
TOPIC = "orders"


@pytest.fixture
def broker() -> Iterator[Running]:
    with authorizing(auto_create_topics_enable="false") as broker:
        make_topic(broker, TOPIC)
        yield broker


def as_user(broker: Running, name: str, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": PASSWORD,
        **settings,
    }


def acl(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    who: str = "alice",
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{who}", "*", operation, permission)


ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
READS = acl(ResourceType.TOPIC, TOPIC, AclOperation.READ)
WRITES = acl(ResourceType.TOPIC, TOPIC, AclOperation.WRITE)
OF_GROUP = acl(ResourceType.GROUP, "billing", AclOperation.READ)


def create(admin: AdminClient, *acls: AclBinding) -> None:
    for future in admin.create_acls(list(acls)).values():
        future.result(PATIENCE_S)


def delete(admin: AdminClient, wanted: AclBindingFilter) -> list[AclBinding]:
    (future,) = admin.delete_acls([wanted]).values()
    return list(future.result(PATIENCE_S))


@pytest.fixture
def root(broker: Running) -> AdminClient:
    return AdminClient(as_user(broker, ROOT))


def test_an_administrator_keeps_entries(root: AdminClient) -> None:
    create(root, READS, WRITES, OF_GROUP)
    assert set(root.describe_acls(ANY).result(PATIENCE_S)) == {READS, WRITES, OF_GROUP}
    of_topics = AclBindingFilter(
        ResourceType.TOPIC, TOPIC, ResourcePatternType.MATCH, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(root.describe_acls(of_topics).result(PATIENCE_S)) == {READS, WRITES}
    assert set(delete(root, of_topics)) == {READS, WRITES}
    assert set(root.describe_acls(ANY).result(PATIENCE_S)) == {OF_GROUP}


def test_nobody_else_does(broker: Running, root: AdminClient) -> None:
    create(root, WRITES)
    alice = AdminClient(as_user(broker, "alice"))
    with pytest.raises(KafkaException) as refused:
        create(alice, READS)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert alice.describe_acls(ANY).result(PATIENCE_S) == []  # librdkafka does not say why
    assert root.describe_acls(ANY).result(PATIENCE_S) == [WRITES]


def produce(broker: Running, who: str, text: str, **settings: Any) -> object:
    """What became of it."""
    told: list[object] = []
    producer = Producer(as_user(broker, who, **settings))
    producer.produce(TOPIC, text, on_delivery=lambda error, _: told.append(error and error.code()))
    assert producer.flush(PATIENCE_S) == 0
    return told[0]


def test_who_may_write_produces_with_or_without_an_id(broker: Running, root: AdminClient) -> None:
    """Repaired: KIP-679, an idempotent producer needs no more than WRITE (2.6.3: IDEMPOTENT_WRITE of the cluster)"""
    assert produce(broker, "alice", "a") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create(root, WRITES)
    assert produce(broker, "alice", "b") is None
    assert produce(broker, "alice", "c", **{"enable.idempotence": True}) is None
    assert produce(broker, "bob", "d") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def next_of(consumer: Consumer) -> object:
    """The next record's value, or the error that comes instead."""
    while (message := consumer.poll(PATIENCE_S)) is not None:
        error = message.error()
        return message.value() if error is None else error.code()
    return None


def test_a_consumer_that_loses_its_permission_hears_of_it_with_its_next_fetch(
    broker: Running, root: AdminClient
) -> None:
    create(root, READS, OF_GROUP)
    produce(broker, ROOT, "before")
    settings = {"group.id": "billing", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
    consumer = Consumer(as_user(broker, "alice", **settings))
    try:
        consumer.subscribe([TOPIC])
        assert next_of(consumer) == b"before"
        assert set(delete(root, ANY)) == {READS, OF_GROUP}
        produce(broker, ROOT, "after")
        refused = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
        assert next_of(consumer) in refused
    finally:
        consumer.close()


def test_a_consumer_without_permission_for_its_group_is_told_so(broker: Running, root: AdminClient) -> None:
    create(root, READS)
    consumer = Consumer(as_user(broker, "alice", **{"group.id": "billing"}))
    try:
        consumer.subscribe([TOPIC])
        assert next_of(consumer) == KafkaError.GROUP_AUTHORIZATION_FAILED
    finally:
        consumer.close()


def test_a_transaction_needs_its_id(broker: Running, root: AdminClient) -> None:
    create(root, WRITES)

    def transact() -> None:
        producer = Producer(as_user(broker, "alice", **{"transactional.id": "transfers"}))
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce(TOPIC, "in a transaction")
        producer.commit_transaction(PATIENCE_S)

    with pytest.raises(KafkaException) as refused:
        transact()
    assert refused.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    create(root, acl(ResourceType.TRANSACTIONAL_ID, "transfers", AclOperation.WRITE))
    transact()
