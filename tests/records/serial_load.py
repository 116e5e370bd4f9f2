"""The serial load, written plainly: what a broker does with a partition, record by record, from first to last.

With `Rule.KAFKA_2_6` this follows `doLoadGroupsAndOffsets` of Kafka 2.6 step by step. `Rule.POSITION` differs in one
thing: a tombstone also ends whatever is pending for its key. It is the yardstick for the mergeable replay and shares
nothing with it but the codec.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kohort.records.batch import RecordBatch
from kohort.records.control import ControlType, decode_control_type
from kohort.records.offsets_topic import CoordinatorKey, GroupKey, OffsetKey, decode_key
from kohort.records.replay import Rule

OffsetId = tuple[str, str, int]


@dataclass
class Commit:
    """A commit with the offset of the first record of its batch, by which Kafka tells older from newer."""

    batch_base: int
    position: int
    value: bytes

    def older_than(self, other: "Commit") -> bool:
        return self.batch_base < other.batch_base


@dataclass
class Loaded:
    offsets: dict[OffsetId, tuple[int, bytes]] = field(default_factory=dict)
    pending: dict[int, dict[OffsetId, tuple[int, bytes]]] = field(default_factory=dict)
    groups: dict[str, bytes] = field(default_factory=dict)
    removed_groups: set[str] = field(default_factory=set)
    groups_by_offsets: set[str] = field(default_factory=set)
    others: dict[bytes, bytes] = field(default_factory=dict)


def serial_load(batches: Iterable[RecordBatch], rule: Rule) -> Loaded:
    loaded: dict[OffsetId, Commit] = {}
    pending: dict[int, dict[OffsetId, Commit]] = {}
    result = Loaded()
    for batch in batches:
        producer_id = batch.header.producer_id
        if batch.header.is_control:
            control_type = decode_control_type(batch.records[0].key) if batch.records else None
            if batch.records and (rule is Rule.KAFKA_2_6 or control_type in list(ControlType)):
                if control_type == ControlType.COMMIT:
                    for key, commit in pending.get(producer_id, {}).items():
                        if key not in loaded or loaded[key].older_than(commit):
                            loaded[key] = commit
                pending.pop(producer_id, None)
            continue
        for record in batch.records:
            match decode_key(record.key):
                case OffsetKey(group, topic, partition):
                    offset_id = (group, topic, partition)
                    in_transaction = batch.header.is_transactional
                    if in_transaction:
                        pending.setdefault(producer_id, {})
                    if record.value is not None:
                        commit = Commit(batch.records[0].offset, record.offset, record.value)
                        (pending[producer_id] if in_transaction else loaded)[offset_id] = commit
                    elif rule is Rule.POSITION:
                        loaded.pop(offset_id, None)
                        for puts in pending.values():
                            puts.pop(offset_id, None)
                    elif in_transaction:
                        pending[producer_id].pop(offset_id, None)
                    else:
                        loaded.pop(offset_id, None)
                case GroupKey(group):
                    if record.value is not None:
                        result.removed_groups.discard(group)
                        result.groups[group] = record.value
                    else:
                        result.groups.pop(group, None)
                        result.removed_groups.add(group)
                case CoordinatorKey():
                    assert record.key is not None
                    if record.value is not None:
                        result.others[record.key] = record.value
                    else:
                        result.others.pop(record.key, None)
    result.offsets = {key: (commit.position, commit.value) for key, commit in loaded.items()}
    result.pending = {
        producer_id: {key: (commit.position, commit.value) for key, commit in puts.items()}
        for producer_id, puts in pending.items()
        if puts
    }
    known = {key[0] for key in loaded} | {key[0] for puts in pending.values() for key in puts}
    result.groups_by_offsets = known - result.groups.keys()
    return result
