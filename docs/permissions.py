"""Writes `docs/reference/permissions.md`: what each API asks for, as its registration says and the tests hold it to."""

from collections.abc import Iterator

from docs.options import cells
from kohort.broker.api import Api, all_apis
from kohort.broker.schemas import api_name
from kohort.broker.security.acl import ResourceType
from kohort.broker.security.permission import Permission

INTRO = """# Permissions

<!-- written by `python -m docs` from what the APIs ask for -->

What each API needs where there is an authorizer ([how to turn it on](../security.md#permissions)), as in Kafka. Who may
not gets `TOPIC_AUTHORIZATION_FAILED`, `GROUP_AUTHORIZATION_FAILED`, `TRANSACTIONAL_ID_AUTHORIZATION_FAILED` or
`CLUSTER_AUTHORIZATION_FAILED`, for each topic, group or id by itself, and the same whether or not it exists. Answers
that tell what the client may do (KIP-430) tell what it really may.

"""
OUTRO = """
APIs that are not here (ApiVersions, SaslHandshake, SaslAuthenticate) are for whoever connects. What brokers tell each
other (WriteTxnMarkers, AddPartitionsToTxn from version 4 on, and the like) is not served to anybody.
"""
_CALLED = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}
_NOTES = {
    0: "The id where a batch is part of a transaction, whatever the request says.",
    1: "At each fetch, for what its session remembers too, and again when a wait is over. CLUSTER_ACTION, and nothing "
    "else, for who says that he is a replica; so with ListOffsets.",
    3: "A list of all topics has those that may be described. CREATE, of the topic or in the cluster, where asking "
    "makes a topic.",
    16: "All groups with DESCRIBE of the cluster, else those that may be described. Never an error.",
    19: "CREATE of the topic or in the cluster. Without DESCRIBE_CONFIGS the answer has no settings in it.",
    20: "DESCRIBE where a topic is named by its id.",
    22: "WRITE of the id; without one IDEMPOTENT_WRITE, or WRITE of any topic there may be (KIP-679).",
    23: "CLUSTER_ACTION instead of DESCRIBE, and for who says that he is a replica.",
    24: "The coordinators' own topics are refused to everybody.",
    32: "Of a topic, or of the cluster for brokers; so with AlterConfigs and IncrementalAlterConfigs.",
    60: "Operations are 0 without DESCRIBE of the cluster; so with Metadata.",
    65: "Topics that may not be described are left out.",
    66: "Ids that may not be described are left out. Never an error.",
    75: "A list of all topics has those that may be described.",
}


def page() -> str:
    """The whole of `docs/reference/permissions.md`."""
    return INTRO + "\n".join(_rows()) + "\n" + OUTRO


def _rows() -> Iterator[str]:
    yield "| API | needs | tells operations of | |"
    yield "|---|---|---|---|"
    for api in all_apis().values():
        if api.permissions or api.tells:
            types = dict.fromkeys(_CALLED[one.resource_type] for one in api.tells)
            yield cells(api_name(api.key, api.last), _needs(api), ", ".join(types), _NOTES.get(api.key, ""))


def _needs(api: Api) -> str:
    by_type: dict[ResourceType, list[Permission]] = {}
    for permission in api.permissions:
        by_type.setdefault(permission.resource_type, []).append(permission)
    return "; ".join(
        f"{', '.join(f'`{one.operation.name}`' for one in of_type)} {_CALLED[kind]}"
        for kind, of_type in by_type.items()
    )
