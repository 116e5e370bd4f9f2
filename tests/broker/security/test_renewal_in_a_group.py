"""Logins that have to be renewed in the middle of a group's life: its members notice, the group does not."""

from typing import Any

from confluent_kafka import Consumer, Producer

from kohort.testing.groups import Group, looked_at
from tests.broker.running import Running, running
from tests.broker.security.logins import OPEN_AND_SASL, add_users

PATIENCE_S = 60.0
LIFETIME_MS = 2000


def test_a_group_does_not_rebalance_when_its_members_log_in_again() -> None:
    settings = {**OPEN_AND_SASL, "connections.max.reauth.ms": str(LIFETIME_MS), "num.partitions": "2"}
    with running(settings=settings) as broker:
        add_users(broker, {"alice": "her password"})
        login = {
            "bootstrap.servers": f"127.0.0.1:{broker.port_of('SASL_PLAINTEXT')}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "her password",
        }
        producer = Producer({**login, "broker.address.family": "v4"})
        write(producer, "before")
        shares: list[list[int]] = [[], []]
        members = [member(login, given) for given in shares]
        try:
            # Whoever comes first has both partitions for a while.
            read = poll_until(members, lambda: [given[-1:] for given in shares] == [[1], [1]] and is_stable(broker))
            settled, joins = generation(broker), [len(given) for given in shares]
            connections = broker.on_loop(lambda: set(broker.server.connections))
            before = renewed(broker)
            # Every connection of three clients several times.
            read += poll_until(members, lambda: renewed(broker) >= before + 15)
            write(producer, "after")
            read += poll_until(members, lambda: True, values=2, read=read)

            assert sorted(read) == ["after 0", "after 1", "before 0", "before 1"]
            assert (generation(broker), [len(given) for given in shares]) == (settled, joins)
            assert is_stable(broker)
            assert broker.server.traffic.logins.expired == 0
            assert broker.server.traffic.logins.failed == 0
            assert connections <= broker.on_loop(lambda: set(broker.server.connections))  # none was made anew
        finally:
            for one in members:
                one.close()


def member(login: dict[str, str], given: list[int]) -> Consumer:
    consumer = Consumer(
        {
            **login,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
        }
    )
    consumer.subscribe(["t"], on_assign=lambda _, partitions: given.append(len(partitions)))
    return consumer


def write(producer: Producer, when: str) -> None:
    for partition in range(2):
        producer.produce("t", f"{when} {partition}", partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def poll_until(members: list[Consumer], holds: Any, *, values: int = 0, read: list[str] | None = None) -> list[str]:
    """What is read meanwhile."""
    found: list[str] = []
    before = [value for value in read or [] if value.startswith("after")]
    for _ in range(int(PATIENCE_S * 20)):
        after = [value for value in found if value.startswith("after")]
        if holds() and len(before) + len(after) >= values:
            return found
        for one in members:
            message = one.poll(0.025)
            if message is not None:
                assert message.error() is None, message.error()
                found.append(message.value().decode())
    raise AssertionError(f"it was never so: {found}")


def group_of(broker: Running) -> Group | None:
    def look() -> Group | None:
        return next(map(looked_at, broker.broker.groups.manager.current_groups), None)

    return broker.on_loop(look)


def generation(broker: Running) -> int:
    group = group_of(broker)
    return -1 if group is None else group.generation


def is_stable(broker: Running) -> bool:
    group = group_of(broker)
    return group is not None and group.state == "Stable" and len(group.members) == 2


def renewed(broker: Running) -> int:
    return broker.on_loop(lambda: broker.server.traffic.logins.renewed)
