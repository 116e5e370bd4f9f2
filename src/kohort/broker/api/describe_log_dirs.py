"""DescribeLogDirs (35): where partitions are kept, and how large they are (KIP-113).

1 throttle time · 2 flexible · 3 an error for the whole · 4 the size of the disk (KIP-827), if there is one · 5
directories that take nothing new: ours does
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.security.permission import DESCRIBE_CLUSTER
from kohort.broker.topics_file import SECURITY_TOPIC
from kohort.errors import ErrorCode, StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_UNKNOWN_BYTES = -1


@api(35, 1, 5, permissions=(DESCRIBE_CLUSTER,))
def describe_log_dirs(broker: "Broker", call: "Call") -> None:
    if not call.may(DESCRIBE_CLUSTER):
        call.answer({"error_code": DESCRIBE_CLUSTER.refusal, "results": ()})
        return
    asked = call.request.topics
    wanted = None if asked is None else {(topic.topic, index) for topic in asked for index in topic.partitions}
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for partition, log in sorted(broker.topics.directory.logs.items()):
        if (wanted is None or partition in wanted) and partition.topic != SECURITY_TOPIC:
            told = {
                "partition_index": partition.partition,
                "partition_size": log.size,
                "offset_lag": 0,
                "is_future_key": False,
            }
            by_topic.setdefault(partition.topic, []).append(told)
    error, space = ErrorCode.NONE, None
    try:
        space = broker.topics.directory.space()
    except StorageFailed as failure:
        error = failure.code
    total_bytes, usable_bytes = space or (_UNKNOWN_BYTES, _UNKNOWN_BYTES)
    result = {
        "error_code": error,
        "log_dir": broker.config.data,
        "topics": [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()],
        "total_bytes": total_bytes,
        "usable_bytes": usable_bytes,
        "is_cordoned": False,
    }
    call.answer({"error_code": ErrorCode.NONE, "results": [result]})
