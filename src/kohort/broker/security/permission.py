"""What requests need to be allowed: an operation with a kind of resource, and the error of whoever may not do it."""

from dataclasses import dataclass

from kohort.broker.security.acl import Operation, ResourceType
from kohort.errors import ErrorCode

_REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@dataclass(frozen=True, slots=True, eq=False)
class Permission:
    """One of those below; there is one of each."""

    operation: Operation
    resource_type: ResourceType

    @property
    def refusal(self) -> ErrorCode:
        return _REFUSALS[self.resource_type]


READ_TOPIC = Permission(Operation.READ, ResourceType.TOPIC)
WRITE_TOPIC = Permission(Operation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC = Permission(Operation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC = Permission(Operation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC = Permission(Operation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC = Permission(Operation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_TOPIC_CONFIGS = Permission(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_TOPIC_CONFIGS = Permission(Operation.ALTER_CONFIGS, ResourceType.TOPIC)

READ_GROUP = Permission(Operation.READ, ResourceType.GROUP)
DELETE_GROUP = Permission(Operation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP = Permission(Operation.DESCRIBE, ResourceType.GROUP)

CREATE_ON_CLUSTER = Permission(Operation.CREATE, ResourceType.CLUSTER)
ALTER_CLUSTER = Permission(Operation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER = Permission(Operation.DESCRIBE, ResourceType.CLUSTER)
CLUSTER_ACTION = Permission(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS = Permission(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CLUSTER_CONFIGS = Permission(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)
IDEMPOTENT_WRITE = Permission(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)

WRITE_TRANSACTIONAL_ID = Permission(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID = Permission(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)

ALL_OF_TOPICS = (
    READ_TOPIC,
    WRITE_TOPIC,
    CREATE_TOPIC,
    DELETE_TOPIC,
    ALTER_TOPIC,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    ALTER_TOPIC_CONFIGS,
)
ALL_OF_GROUPS = (READ_GROUP, DELETE_GROUP, DESCRIBE_GROUP)
ALL_OF_CLUSTER = (
    CREATE_ON_CLUSTER,
    ALTER_CLUSTER,
    DESCRIBE_CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE_CLUSTER_CONFIGS,
    ALTER_CLUSTER_CONFIGS,
    IDEMPOTENT_WRITE,
)
