"""Users whose salted passwords a cluster keeps: listed, added and deleted by its administrators (KIP-554)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kohort.admin.cluster import Cluster
from kohort.admin.messages import Api
from kohort.admin.refusals import in_words, named
from kohort.broker.security.scram_credentials import ScramMechanism, new_salt, salted
from kohort.errors import ErrorCode

DESCRIBE_USERS = Api("DescribeUserScramCredentials", 50, 0, 0)
ALTER_USERS = Api("AlterUserScramCredentials", 51, 0, 0)


class User(NamedTuple):
    """Somebody, and how often each of his passwords is salted."""

    name: str
    iterations: dict[ScramMechanism, int]


def list_users(cluster: Cluster) -> list[User]:
    """All of them."""

    async def ask() -> list[User]:
        answer = await cluster.ask(_any_node(cluster), DESCRIBE_USERS, users=None)
        cluster.refuse(answer.error_code, "the users")
        return sorted(
            User(one.user, {ScramMechanism(info.mechanism): info.iterations for info in one.credential_infos})
            for one in answer.results
        )

    return cluster.run(ask())


def put_user(
    cluster: Cluster, name: str, password: str, mechanisms: Sequence[ScramMechanism], iterations: int
) -> str | None:
    """Add somebody, or give him another password. It is salted here; the reason why that cannot be, or None.

    One request for each mechanism: brokers of some releases refuse two at once.
    """
    for mechanism in mechanisms:
        salt = new_salt()
        upsertion = {
            "name": name,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": salt,
            "salted_password": salted(mechanism, password, salt, iterations),
        }
        reason = _alter(cluster, name, upsertions=[upsertion])
        if reason is not None:
            return reason
    return None


def delete_user(cluster: Cluster, name: str, mechanisms: Iterable[ScramMechanism]) -> str | None:
    """Take the passwords away; the reason why that cannot be, or None."""
    for mechanism in mechanisms:
        reason = _alter(cluster, name, deletions=[{"name": name, "mechanism": mechanism}])
        if reason is not None:
            return reason
    return None


def _alter(
    cluster: Cluster, name: str, *, deletions: Sequence[object] = (), upsertions: Sequence[object] = ()
) -> str | None:
    async def ask() -> str | None:
        answer = await cluster.ask(_any_node(cluster), ALTER_USERS, deletions=deletions, upsertions=upsertions)
        for result in answer.results:
            if result.user == name and result.error_code:
                known = result.error_code == ErrorCode.RESOURCE_NOT_FOUND
                return (
                    f"there is no user {named(name)}" if known else result.error_message or in_words(result.error_code)
                )
        return None

    return cluster.run(ask())


def _any_node(cluster: Cluster) -> int:
    return cluster.nodes()[0].id
