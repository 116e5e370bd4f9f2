"""Logs made by Hypothesis: everything that a coordinator writes, and much that it never would."""

from hypothesis import strategies as st

from kohort.records.batch import Header, Record, RecordBatch
from kohort.records.compression import Codec
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)

int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
timestamps = st.integers(-1, 1 << 45)
names = st.text(st.characters(codec="utf-8"), max_size=12)

offset_values = st.one_of(
    st.builds(
        OffsetCommitValue,
        int64,
        names,
        timestamps,
        leader_epoch=int32,
        expire_timestamp=timestamps,
        topic_id=st.none() | st.uuids(),
        version=st.integers(0, 4),
    )
).map(
    lambda v: OffsetCommitValue(
        v.offset,
        v.metadata,
        v.commit_timestamp,
        v.leader_epoch if v.version >= 3 else -1,
        v.expire_timestamp if v.version == 1 else -1,
        v.topic_id if v.version >= 4 and v.topic_id and v.topic_id.int else None,
        v.version,
    )
)
members = st.builds(
    MemberValue, names, names, names, int32, st.binary(max_size=20), st.binary(max_size=20), int32, names
)


@st.composite
def group_values(draw: st.DrawFn) -> GroupMetadataValue:
    version = draw(st.integers(0, 4))
    drawn = draw(st.lists(members, max_size=3))
    kept = tuple(
        MemberValue(
            m.member_id,
            m.client_id,
            m.client_host,
            m.session_timeout,
            m.subscription,
            m.assignment,
            m.rebalance_timeout if version >= 1 else -1,
            m.group_instance_id if version >= 3 else None,
        )
        for m in drawn
    )
    state_timestamp = draw(int64) if version >= 2 else -1
    protocol, leader = draw(st.none() | names), draw(st.none() | names)
    return GroupMetadataValue(draw(names), draw(int32), protocol, leader, kept, state_timestamp, version)


offset_keys = st.builds(OffsetKey, names, names, int32, st.integers(0, 1))
group_keys = st.builds(GroupKey, names)
keys = st.one_of(
    offset_keys.map(encode_key),
    group_keys.map(encode_key),
    offset_keys.map(lambda key: encode_key(key) + b"\x00more"),
    st.tuples(offset_keys.map(encode_key), st.integers(0, 30)).map(lambda cut: cut[0][: cut[1]]),
    st.binary(max_size=24),
    st.none(),
)
values = st.one_of(offset_values.map(encode_value), group_values().map(encode_value), st.binary(max_size=40), st.none())
headers = st.lists(st.builds(Header, names, st.none() | st.binary(max_size=5)), max_size=2).map(tuple)


@st.composite
def batches(draw: st.DrawFn, base_offset: int = 0) -> RecordBatch:
    """Any batch of format 2, its records at increasing offsets with holes."""
    count = draw(st.integers(0, 4))
    offset, records = base_offset, []
    for _ in range(count):
        offset += draw(st.integers(0, 3))
        records.append(Record(offset, draw(timestamps), draw(keys), draw(values), draw(headers)))
        offset += 1
    return RecordBatch.build(
        records,
        base_offset=base_offset,
        codec=draw(st.sampled_from(Codec)),
        transactional=draw(st.booleans()),
        control=draw(st.integers(0, 7)) == 0,
        log_append_time=draw(st.booleans()),
        delete_horizon=draw(st.none() | timestamps),
        producer_id=draw(st.integers(-1, 5)),
        producer_epoch=draw(int16),
        base_sequence=draw(int32),
        partition_leader_epoch=draw(int32),
    )


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    parts, offset = [], draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(0, 5))):
        batch = draw(batches(offset))
        parts.append(batch.encode())
        offset = batch.header.next_offset
    return b"".join(parts)


@st.composite
def coordinator_logs(draw: st.DrawFn) -> list[bytes]:
    """Batches as coordinators write them, over few keys and producers, so that everything meets everything."""
    log: list[bytes] = []
    offset = 0
    for _ in range(draw(st.integers(1, 24))):
        producer_id = draw(st.integers(0, 2))
        if draw(st.integers(0, 3)) == 0:
            marker = Marker(draw(st.sampled_from(ControlType)), 0)
            batch = marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=offset)
            records = [batch.records[0]._replace(offset=offset)]
            if draw(st.integers(0, 9)) == 0:
                records = [records[0]._replace(key=b"\x00\x00\x00\x07")]
            built = RecordBatch.build(records, transactional=True, control=True, producer_id=producer_id)
        else:
            records = [Record(offset + n, offset, *draw(_few_entries)) for n in range(draw(st.integers(1, 3)))]
            transactional = draw(st.booleans())
            built = RecordBatch.build(
                records, transactional=transactional, producer_id=producer_id if transactional else -1
            )
        log.append(built.encode())
        offset = built.header.next_offset
    return log


_few_offset_keys = st.sampled_from(
    [encode_key(OffsetKey(group, "t", partition)) for group in "ab" for partition in (0, 1)]
    + [encode_key(OffsetKey("a", "t", 0, version=0))]
)
_few_entries = st.one_of(
    st.tuples(_few_offset_keys, st.none() | st.integers(0, 99).map(lambda n: b"\x00\x03%d" % n)),
    st.tuples(_few_offset_keys, st.integers(0, 99).map(lambda n: b"\x00\x03%d" % n)),
    st.tuples(
        st.sampled_from([encode_key(GroupKey("a")), b"\x00\x03\x00\x01c", b"\x7f\x7f"]), st.none() | st.just(b"g")
    ),
)
