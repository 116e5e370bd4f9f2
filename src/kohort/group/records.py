"""Every batch that a coordinator writes to `__consumer_offsets`, made here and nowhere else.

Byte for byte as Kafka 2.6 writes them: commits carry base sequence 0, group records and tombstones none; all records
of a batch bear one time; each value has the version that the inter-broker protocol asks for.
"""

import struct
from collections.abc import Iterable, Mapping

from kohort.config import GroupConfig
from kohort.errors import RecordTooLarge
from kohort.group.group_metadata import GroupMetadata
from kohort.group.requests import GroupId, MemberId, Offsets
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record, RecordBatch
from kohort.records.compression import Codec
from kohort.records.offsets_topic import (
    NO_EXPIRE_TIMESTAMP,
    NO_STATE_TIMESTAMP,
    GroupKey,
    GroupMetadataValue,
    InterBrokerVersion,
    MemberValue,
    OffsetCommitValue,
    encode_key,
    encode_offset_keys,
    encode_value,
    group_value_version,
    offset_value_version,
)
from kohort.records.primitives import utf8

_LONGEST_STRING = 0x7FFF
_WRITTEN_VERSION = 3


def is_writable(text: str) -> bool:
    """Whether a string fits into a record: its length in bytes is written in 16 bits."""
    return 4 * len(text) <= _LONGEST_STRING or len(utf8(text)) <= _LONGEST_STRING


class GroupRecords:
    """The batches of one coordinator, in the versions and the compression that its settings ask for."""

    def __init__(self, config: GroupConfig) -> None:
        ibp = InterBrokerVersion.parse(config.inter_broker_protocol_version)
        self._codec = Codec(config.offsets_topic_compression_codec)
        self._group_version = group_value_version(ibp)
        self._offset_version = offset_value_version(ibp, NO_EXPIRE_TIMESTAMP)
        self._expiring_offset_version = offset_value_version(ibp, expire_timestamp=0)

    @property
    def writes_plain_commits(self) -> bool:
        """Whether commits are written uncompressed and in the version that `WrittenCommits` have."""
        return self._codec is Codec.NONE and self._offset_version == _WRITTEN_VERSION

    def offset_commits(
        self,
        group_id: GroupId,
        offsets: Offsets,
        timestamp: int,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> bytes:
        """One record for each partition; with a producer the batch is transactional."""
        records = []
        try:
            keys = encode_offset_keys(group_id, offsets)
            for number, (key, value) in enumerate(zip(keys, offsets.values(), strict=True)):
                records.append(Record(number, timestamp, key, encode_value(self._in_our_version(value))))
        except struct.error as error:
            raise RecordTooLarge(f"a commit of group {group_id} does not fit into a record") from error
        return RecordBatch.build(
            records,
            codec=self._codec,
            transactional=producer_id != NO_PRODUCER_ID,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
        ).encode()

    def _in_our_version(self, value: OffsetCommitValue) -> OffsetCommitValue:
        has_expiry = value.expire_timestamp != NO_EXPIRE_TIMESTAMP
        version = self._expiring_offset_version if has_expiry else self._offset_version
        return value if value.version == version else value._replace(version=version)

    def group_metadata(self, group: GroupMetadata, assignment: Mapping[MemberId, bytes], timestamp: int) -> bytes:
        """The group as it is, with this assignment."""
        protocol = group.protocol_name
        state_timestamp = group.current_state_timestamp
        value = GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=protocol,
            leader=group.leader_id,
            members=tuple(
                MemberValue(
                    member_id=member.member_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(protocol or ""),
                    assignment=assignment.get(member.member_id, b""),
                    rebalance_timeout=member.rebalance_timeout_ms,
                    group_instance_id=member.group_instance_id,
                )
                for member in group.members.values()
            ),
            current_state_timestamp=NO_STATE_TIMESTAMP if state_timestamp is None else state_timestamp,
            version=self._group_version,
        )
        try:
            record = Record(0, timestamp, encode_key(GroupKey(group.group_id)), encode_value(value))
        except struct.error as error:
            raise RecordTooLarge(f"group {group.group_id} does not fit into a record") from error
        return RecordBatch.build([record], codec=self._codec).encode()

    def tombstones(
        self, group_id: GroupId, partitions: Iterable[TopicPartition], timestamp: int, *, of_group: bool
    ) -> bytes:
        """The end of these offsets and, behind them in the same batch, of the group itself."""
        keys = encode_offset_keys(group_id, partitions)
        if of_group:
            keys.append(encode_key(GroupKey(group_id)))
        records = [Record(number, timestamp, key, None) for number, key in enumerate(keys)]
        return RecordBatch.build(records, codec=self._codec).encode()
