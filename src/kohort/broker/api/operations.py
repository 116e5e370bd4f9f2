"""What a client may do (KIP-430), as bits: where nobody is refused anything, all that there is."""

from collections.abc import Iterable

NOT_ASKED = -(1 << 31)

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = range(3, 10)
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = range(10, 13)


def _bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    (_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS),
)
CLUSTER_OPERATIONS = _bits(
    (_CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE)
)
