"""The columns of records as Arrow has them; to know them takes no compiled code."""

import pyarrow as pa

MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("instance_id", pa.string()),
        ("rebalance_timeout", pa.int32()),
        ("session_timeout", pa.int32()),
        ("subscription", pa.list_(pa.string())),
        ("assignment", pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))),
        ("subscription_raw", pa.binary()),
        ("assignment_raw", pa.binary()),
    ]
)

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("kind", pa.string()),
        ("key_version", pa.int16()),
        ("value_version", pa.int16()),
        ("tombstone", pa.bool_()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("transactional", pa.bool_()),
        ("control", pa.bool_()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("topic_partition", pa.int32()),
        ("committed_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("metadata", pa.string()),
        ("commit_timestamp", pa.int64()),
        ("expire_timestamp", pa.int64()),
        ("topic_id", pa.string()),
        ("protocol_type", pa.string()),
        ("generation", pa.int32()),
        ("protocol", pa.string()),
        ("leader", pa.string()),
        ("state_timestamp", pa.int64()),
        ("members", pa.list_(MEMBER)),
        ("control_type", pa.string()),
        ("coordinator_epoch", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
        ("reason", pa.string()),
    ]
)
"""Every key that a row can have; the fields of newer coordinators' records (`key`, `value`) are JSON."""
