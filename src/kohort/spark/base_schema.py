"""The columns of the tables that are read or replayed from a log, with a comment on each."""

import pyarrow as pa

from kohort.records import arrow_schema
from kohort.spark.columns import Column, Columns


def _always(name: str, type_: pa.DataType, comment: str) -> Column:
    """A column in which every row has a value."""
    return Column(name, type_, comment, nullable=False)


TIME = pa.timestamp("us", "UTC")
"""An instant. A time that Spark cannot hold, or that the log does not give (-1), is NULL."""

_RECORD_COMMENTS = {
    "partition": "Partition of the offsets topic; -1 if the file's place does not tell",
    "offset": "Offset of the record in its partition",
    "timestamp": "Time of the record, milliseconds since 1970",
    "kind": "offset_commit, group_metadata, the name of a newer coordinator record, control, or unknown",
    "key_version": "Version of the record's key",
    "value_version": "Version of the record's value; NULL for a tombstone",
    "tombstone": "Whether the record has no value",
    "producer_id": "Producer of the batch; -1 outside of transactions",
    "producer_epoch": "Epoch of that producer",
    "transactional": "Whether the batch belongs to a transaction",
    "control": "Whether this is a control record, the end of a transaction for instance",
    "group": "Group id",
    "topic": "Topic whose offset is committed",
    "topic_partition": "Partition of that topic",
    "committed_offset": "Offset that is committed",
    "leader_epoch": "Leader epoch of the committed offset; -1 if the consumer gave none",
    "metadata": "Text that the consumer left with its commit",
    "commit_timestamp": "Time of the commit, milliseconds since 1970",
    "expire_timestamp": "Time from which the commit may be forgotten, milliseconds since 1970; -1: broker's rule",
    "topic_id": "Id of the topic, where the record has one",
    "protocol_type": "What kind of group this is: consumer, connect, ...",
    "generation": "Generation of the group",
    "protocol": "Assignor that the members agreed on",
    "leader": "Member id of the group's leader",
    "state_timestamp": "Time of the group's last change of state, milliseconds since 1970",
    "members": "Members of the group",
    "control_type": "commit, abort, or the number of another control record",
    "coordinator_epoch": "Epoch of the transaction coordinator that wrote the marker",
    "key": "Fields of a newer coordinator record's key, as JSON",
    "value": "Fields of a newer coordinator record's value, as JSON",
    "raw_key": "Bytes of a key that cannot be read",
    "raw_value": "Bytes of a value that cannot be read",
    "reason": "Why key or value cannot be read",
}

_PLACE = (
    _always("partition", pa.int32(), "Partition of the offsets topic; -1 if the file's place does not tell"),
    _always("offset", pa.int64(), "Offset of the record in its partition"),
    Column("timestamp", TIME, "Time of the record"),
)

_BYTES = _always("bytes", pa.int32(), "What the record takes in its batch, uncompressed")

_COMMITTED = (
    _always("group", pa.string(), "Group that commits"),
    _always("topic", pa.string(), "Topic whose offset is committed"),
    _always("topic_partition", pa.int32(), "Partition of that topic"),
    Column("committed_offset", pa.int64(), "Offset that is committed: the next one to be consumed"),
    Column("leader_epoch", pa.int32(), "Leader epoch of the committed offset; -1 if the consumer gave none"),
    Column("metadata", pa.string(), "Text that the consumer left with its commit"),
    Column("commit_timestamp", TIME, "Time of the commit"),
    Column("expire_timestamp", TIME, "Time from which the commit may be forgotten; NULL: by the broker's rule"),
)

_MEMBER = (
    Column("member_id", pa.string(), "Member id"),
    Column("client_id", pa.string(), "Client id that the member gave"),
    Column("client_host", pa.string(), "Host from which the member came"),
    Column("instance_id", pa.string(), "group.instance.id of a static member"),
    Column("session_timeout", pa.int32(), "Session timeout in milliseconds"),
    Column("rebalance_timeout", pa.int32(), "Rebalance timeout in milliseconds"),
    Column("subscription", pa.list_(pa.string()), "Topics that the member wants; NULL if only its clients can tell"),
)

MEMBER = pa.struct([field for field in arrow_schema.MEMBER if not field.name.endswith("_raw")])
"""A member as `current_groups` holds it."""

_CURRENT_OFFSETS = (
    *_COMMITTED,
    Column("partition", pa.int32(), "Partition of the offsets topic"),
    Column("offset", pa.int64(), "Offset of the record that holds the commit"),
)

BASE: dict[str, Columns] = {
    "records": tuple(Column(field.name, field.type, _RECORD_COMMENTS[field.name]) for field in arrow_schema.SCHEMA),
    "offset_commits": (
        *_PLACE,
        *_COMMITTED,
        _always("tombstone", pa.bool_(), "Whether the record removes the offset"),
        _always("producer_id", pa.int64(), "Producer of the transaction; -1 outside of one"),
        _always("producer_epoch", pa.int16(), "Epoch of that producer"),
        _always("transactional", pa.bool_(), "Whether the commit belongs to a transaction"),
        _always("fate", pa.string(), "plain (no transaction), committed, aborted, or open (no marker follows)"),
        Column("decided_offset", pa.int64(), "Offset of the marker that ended the transaction"),
        Column("decided_timestamp", TIME, "Time of that marker"),
        _always("batch_offset", pa.int64(), "Offset of the batch that holds the record"),
        _BYTES,
    ),
    "group_generations": (
        *_PLACE,
        Column("group", pa.string(), "Group id"),
        Column("protocol_type", pa.string(), "What kind of group this is: consumer, connect, ..."),
        Column("generation", pa.int32(), "Generation of the group"),
        Column("protocol", pa.string(), "Assignor that the members agreed on"),
        Column("leader", pa.string(), "Member id of the leader"),
        Column("state_timestamp", TIME, "Time of the group's last change of state"),
        Column("member_count", pa.int32(), "Number of members"),
        Column("tombstone", pa.bool_(), "Whether the record removes the group"),
        _BYTES,
    ),
    "members": (
        *_PLACE,
        Column("group", pa.string(), "Group id"),
        Column("generation", pa.int32(), "Generation of the group"),
        *_MEMBER,
        Column("is_leader", pa.bool_(), "Whether the member leads the group"),
    ),
    "assignments": (
        *_PLACE,
        Column("group", pa.string(), "Group id"),
        Column("generation", pa.int32(), "Generation of the group"),
        Column("member_id", pa.string(), "Member that owns the partition"),
        Column("instance_id", pa.string(), "group.instance.id of a static member"),
        Column("topic", pa.string(), "Topic that is owned"),
        Column("topic_partition", pa.int32(), "Partition of that topic"),
    ),
    "quarantine": (
        Column("path", pa.string(), "File that is damaged"),
        Column("partition", pa.int32(), "Partition of the offsets topic; -1 if the file's place does not tell"),
        Column("position", pa.int64(), "Byte of the file at which the damaged batch begins"),
        Column("offset", pa.int64(), "First offset of the batch, if it can be told"),
        Column("records", pa.int32(), "How many records are affected; 1 if unknown"),
        Column("reason", pa.string(), "What is wrong"),
        Column("raw", pa.binary(), "The first 1,024 bytes from there"),
    ),
    "current_groups": (
        Column("group", pa.string(), "Group id"),
        Column("type", pa.string(), "classic, consumer, share or streams"),
        Column("state", pa.string(), "State as a coordinator would load it"),
        Column("generation", pa.int32(), "Generation; the epoch of a group of a newer type"),
        Column("protocol_type", pa.string(), "What kind of group this is: consumer, connect, ..."),
        Column("protocol", pa.string(), "Assignor that the members agreed on"),
        Column("leader", pa.string(), "Member id of the leader"),
        Column("partition", pa.int32(), "Partition of the offsets topic"),
        Column("member_count", pa.int32(), "Number of members"),
        Column("members", pa.list_(MEMBER), "Members, with their subscription and assignment"),
        Column("since", TIME, "Time of the group's last change of state"),
    ),
    "current_offsets": _CURRENT_OFFSETS,
    "pending_offsets": (
        *_CURRENT_OFFSETS,
        Column("producer_id", pa.int64(), "Producer whose transaction is open"),
        Column("timestamp", TIME, "Time of the record: pending since"),
    ),
    "folded": (
        Column("log", pa.int32(), "Number of the log among those that are read"),
        Column("partition", pa.int32(), "Partition of the offsets topic; -1 if the file's place does not tell"),
        Column("place", pa.int32(), "Place of the piece among those of its log"),
        Column("ended", pa.bool_(), "Whether the replay reached the time up to which it was asked for"),
        Column("next_offset", pa.int64(), "Offset behind the last batch of the piece"),
        Column("last_timestamp", pa.int64(), "Latest time of a batch of the piece, milliseconds since 1970"),
        Column("records", pa.int64(), "How many records the piece was made of"),
        Column("damaged", pa.int64(), "How many were passed over, for their batch is damaged; as `quarantine` counts"),
        Column("piece", pa.binary(), "What the piece does to the state before it, in the format of kohort's replay"),
    ),
    "written": (
        Column("table", pa.string(), "Name of a table"),
        Column("file", pa.string(), "File in the table's directory that the task has written"),
        Column("rows", pa.int64(), "How many rows it holds"),
        Column("seconds", pa.float64(), "How long the task was busy with it"),
    ),
    "marks": (
        Column("start", pa.string(), "Where a micro-batch begins, by partition, as JSON"),
        Column("end", pa.string(), "Where it ends"),
    ),
    "end_offsets": (
        Column("topic", pa.string(), "Topic"),
        Column("topic_partition", pa.int32(), "Partition of that topic"),
        Column("start_offset", pa.int64(), "First offset that the partition holds"),
        Column("end_offset", pa.int64(), "Offset behind the last one"),
        Column("at", TIME, "When that was so"),
    ),
    "topic_times": (
        Column("topic", pa.string(), "Topic"),
        Column("topic_partition", pa.int32(), "Partition of that topic"),
        Column("offset", pa.int64(), "An offset of that partition"),
        Column("timestamp", TIME, "When the record at that offset was produced"),
    ),
}
