"""The compiled way of an OffsetCommit does what the general way does, byte by byte, or leaves the request to it."""

import random
import threading
from typing import Any

import pytest

from kohort.broker import commit_transcoder
from kohort.broker.api.offset_commit import committed_values
from kohort.broker.commit_transcoder import CommitTranscoder, TranscodedCommit
from kohort.broker.short_way import _COMMITS_BEFORE
from kohort.broker.wire import BadRequest, read_body, read_header, schema_of
from kohort.clock import VirtualClock
from kohort.config import GroupConfig
from kohort.errors import ErrorCode
from kohort.group.records import GroupRecords
from kohort.log.names import TopicPartition
from kohort.records.offsets_topic import OffsetCommitValue
from tests.broker.running import Running, running
from tests.broker.wire_client import request_bytes

OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE = 8, 9, 47
VERSIONS = range(2, 10)
NOW = 1_700_000_000_123
TOPICS = ("orders", "a.b", "x" * 249)
GROUPS = ("g", "", "gruppe-ü", "組" * 20, "x" * 300)
METADATA = (None, "", "m", "host-17:worker-3", "x" * 4096)


def request(noise: random.Random, version: int) -> dict[str, Any]:
    """A commit as clients send it: any offsets, partitions in any order."""
    topics = []
    for name in noise.sample(TOPICS, noise.choice((1, 1, 2, 3))):
        numbers = noise.sample(range(40), noise.choice((1, 3, 10, 40)))
        if noise.random() < 0.5:
            numbers.sort()
        partitions = [
            {
                "partition_index": number,
                "committed_offset": noise.choice((0, 1, noise.getrandbits(40), (1 << 63) - 1, -1)),
                "committed_metadata": noise.choice(METADATA),
            }
            | ({"committed_leader_epoch": noise.choice((-1, 0, 7, (1 << 31) - 1))} if version >= 6 else {})
            for number in numbers
        ]
        topics.append({"name": name, "partitions": partitions})
    values: dict[str, Any] = {
        "group_id": noise.choice(GROUPS),
        "generation_id_or_member_epoch": noise.choice((-1, 0, 5, (1 << 31) - 1)),
        "member_id": noise.choice(("", "consumer-1-0b1c", "ü")),
        "topics": topics,
    }
    if version >= 7:
        values["group_instance_id"] = noise.choice((None, "", "static-1"))
    return values


def frame_of(values: dict[str, Any], version: int, correlation_id: int = 7) -> bytes:
    return request_bytes(OFFSET_COMMIT, version, correlation_id, "a client", values)


@pytest.fixture(scope="module")
def transcoder() -> CommitTranscoder:
    return CommitTranscoder(4096)


def transcode(transcoder: CommitTranscoder, frame: bytes) -> TranscodedCommit | None:
    header = read_header(frame)
    return transcoder.transcode(frame, header.body_at, header.api_version, NOW)


def generally(frame: bytes) -> Any:
    header = read_header(frame)
    return read_body(frame, header, schema_of(header.api_key, header.api_version))


def records_of(request: Any) -> bytes:
    """What the general way writes for a request."""
    offsets = {
        TopicPartition(topic.name, partition.partition_index): OffsetCommitValue(
            partition.committed_offset,
            partition.committed_metadata or "",
            NOW,
            getattr(partition, "committed_leader_epoch", -1),
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    return GroupRecords(GroupConfig()).offset_commits(request.group_id, offsets, NOW)


def answer_to(frame: bytes, request: Any) -> bytes:
    header = read_header(frame)
    schema = schema_of(OFFSET_COMMIT, header.api_version)
    out = bytearray(header.correlation_id.to_bytes(4, "big") + (b"\0" if schema.is_flexible else b""))
    topics = [
        {
            "name": topic.name,
            "partitions": [{"partition_index": each.partition_index, "error_code": 0} for each in topic.partitions],
        }
        for topic in request.topics
    ]
    schema.write(out, {"topics": topics})
    return bytes(out)


def assert_same(frame: bytes, short: TranscodedCommit) -> None:
    """What the short way makes of a request is what the general way makes of it."""
    long = generally(frame)
    assert bytes(short.commits.batch.data) == records_of(long)
    assert short.answer == answer_to(frame, long)
    who = short.names.who
    assert (who.group_id, who.member_id) == (long.group_id, long.member_id)
    assert who.generation_id == long.generation_id_or_member_epoch
    assert who.group_instance_id == getattr(long, "group_instance_id", None)
    assert short.names.topics == tuple(t.name for t in long.topics)
    assert short.highest == tuple(max(p.partition_index for p in t.partitions) for t in long.topics)
    assert getattr(long, "retention_time", -1) == -1


@pytest.mark.parametrize("version", VERSIONS)
def test_plain_requests_become_the_same_bytes(transcoder: CommitTranscoder, version: int) -> None:
    noise = random.Random(version)
    for number in range(150):
        values = request(noise, version) | ({"retention_time": -1} if version <= 4 else {})
        frame = frame_of(values, version, number)
        short = transcode(transcoder, frame)
        assert short is not None, values
        assert_same(frame, short)
        assert list(short.commits) == [
            TopicPartition(topic["name"], partition["partition_index"])
            for topic in values["topics"]
            for partition in topic["partitions"]
        ]


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_with_random_damage_are_the_same_or_left_to_the_general_way(
    transcoder: CommitTranscoder, version: int
) -> None:
    noise = random.Random(100 + version)
    taken = refused = 0
    for number in range(1_500):
        values = request(noise, version) | ({"retention_time": -1} if version <= 4 else {})
        frame = bytearray(frame_of(values, version, number))
        body_at = read_header(bytes(frame)).body_at
        for _ in range(noise.choice((1, 1, 3))):
            match noise.randrange(3):
                case 0:
                    frame[noise.randrange(body_at, len(frame))] = noise.choice((0, 1, 0x7F, 0x80, 0xFF, 0xED))
                case 1 if len(frame) > body_at + 20:
                    del frame[noise.randrange(body_at, len(frame)) :]
                    break
                case _:
                    frame.insert(noise.randrange(body_at, len(frame)), noise.choice((0, 1, 0xFF)))
        damaged = bytes(frame)
        short = transcode(transcoder, damaged)
        if short is None:
            refused += 1
            continue
        taken += 1
        assert_same(damaged, short)
    assert taken > 100
    assert refused > 100


def a_commit(**changes: Any) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": "m"}
    return {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "orders", "partitions": [partition]}],
    } | changes


@pytest.mark.parametrize(
    "topics",
    [
        pytest.param([], id="no topics"),
        pytest.param([{"name": "orders", "partitions": []}], id="no partitions"),
        pytest.param([{"name": "orders", "partitions": [{"partition_index": 0}] * 2}], id="a partition twice"),
        pytest.param([{"name": "orders", "partitions": [{"partition_index": 0}]}] * 2, id="a topic twice"),
        pytest.param([{"name": "orders", "partitions": [{"partition_index": -1}]}], id="a negative partition"),
        pytest.param(
            [{"name": "orders", "partitions": [{"partition_index": 0, "committed_metadata": "x" * 4097}]}],
            id="long metadata",
        ),
        pytest.param(
            [{"name": "orders", "partitions": [{"partition_index": 0, "committed_metadata": "ü"}]}],
            id="metadata beyond ASCII",
        ),
        pytest.param(
            [{"name": f"t{number}", "partitions": [{"partition_index": 0}]} for number in range(257)], id="many topics"
        ),
        pytest.param(
            [{"name": "orders", "partitions": [{"partition_index": number} for number in range(400, -1, -1)]}],
            id="many partitions out of order",
        ),
    ],
)
def test_what_is_not_plain_is_left_to_the_general_way(transcoder: CommitTranscoder, topics: list[Any]) -> None:
    assert transcode(transcoder, frame_of(a_commit(topics=topics), 8)) is None


def test_a_retention_time_is_left_to_the_general_way(transcoder: CommitTranscoder) -> None:
    assert transcode(transcoder, frame_of(a_commit(retention_time=60_000), 4)) is None
    assert transcode(transcoder, frame_of(a_commit(retention_time=-1), 4)) is not None


def test_a_thousand_partitions_in_order_are_plain(transcoder: CommitTranscoder) -> None:
    partitions = [{"partition_index": number, "committed_offset": number} for number in range(1_000)]
    frame = frame_of(a_commit(topics=[{"name": "orders", "partitions": partitions}]), 8)
    short = transcode(transcoder, frame)
    assert short is not None
    assert_same(frame, short)


def test_names_are_not_mistaken_for_those_of_another_request(
    transcoder: CommitTranscoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are remembered by their bytes, and only so many."""
    monkeypatch.setattr(commit_transcoder, "_MOST_KNOWN", 3)
    for number in range(60):
        values = a_commit() | {"group_id": f"g{number % 5}", "generation_id_or_member_epoch": number % 3}
        frame = frame_of(values, 5 + number % 4)
        short = transcode(transcoder, frame)
        assert short is not None
        assert_same(frame, short)
        assert len(transcoder._known) <= 3


# In a broker


def logs_of(broker: Running) -> dict[TopicPartition, bytes]:
    logs = broker.broker.topics.directory.logs
    return {
        partition: b"".join(segment.file.read_at(0, segment.size) for segment in log.segments)
        for partition, log in logs.items()
        if log.size
    }


@pytest.mark.parametrize("seed", range(4))
def test_two_brokers_with_and_without_it_answer_and_write_the_same(seed: int) -> None:
    """Commits that are taken and refused, offsets read and deleted in between, in any order."""
    frames: list[bytes] = []
    noise = random.Random(seed)
    for number in range(400):
        group = noise.choice(("g1", "g2"))
        topics = [{"name": noise.choice(("t", "u", "unknown")), "partition_indexes": [0, 1, 2]}]
        if noise.random() < 0.7:
            partitions = [
                {"partition_index": partition, "committed_offset": number, "committed_metadata": noise.choice("ab")}
                for partition in noise.choice(([0], [0, 1, 2], [2, 1], [7]))
            ]
            commit = {
                "group_id": group,
                "generation_id_or_member_epoch": noise.choice((-1, -1, -1, 3)),
                "topics": [{"name": topics[0]["name"], "partitions": partitions}],
            }
            frames.append(request_bytes(OFFSET_COMMIT, 8, number, "c", commit))
        elif noise.random() < 0.5:
            frames.append(request_bytes(OFFSET_FETCH, 5, number, "c", {"group_id": group, "topics": topics}))
        else:
            gone = [{"name": topics[0]["name"], "partitions": [{"partition_index": noise.randrange(3)}]}]
            frames.append(request_bytes(OFFSET_DELETE, 0, number, "c", {"group_id": group, "topics": gone}))

    def serve(*, short: bool) -> tuple[list[bytes], dict[TopicPartition, bytes], int]:
        with running(clock=VirtualClock(), settings={"offsets.topic.num.partitions": "1"}) as broker:
            broker.on_loop(broker.broker.ensure_offsets_topic)
            for name in ("t", "u"):
                broker.on_loop(lambda name=name: broker.broker.create_topic(name, 3, {}))
            if short:
                broker.on_loop(broker.broker.short_way.open)
            answers = []
            with broker.client() as client:
                for frame in frames:
                    client.send_frame(frame)
                    answers.append(client.receive_frame())
            return answers, broker.on_loop(lambda: logs_of(broker)), broker.broker.short_way._commits

    answers, logs, commits = serve(short=False)
    short_answers, short_logs, short_commits = serve(short=True)
    assert short_answers == answers
    assert short_logs == logs
    assert logs
    assert commits > 0
    assert short_commits == 0


def test_a_refused_commit_is_told_for_each_partition() -> None:
    with running() as broker:
        broker.on_loop(broker.broker.ensure_offsets_topic)
        broker.on_loop(lambda: broker.broker.create_topic("t", 3, {}))
        broker.on_loop(broker.broker.short_way.open)
        partitions = [{"partition_index": number, "committed_offset": 1} for number in range(3)]
        with broker.client() as client:
            answer = client.ask(
                OFFSET_COMMIT,
                8,
                group_id="g",
                generation_id_or_member_epoch=4,
                member_id="nobody",
                topics=[{"name": "t", "partitions": partitions}],
            )
        told = [partition.error_code for partition in answer.topics[0].partitions]
        assert told == [ErrorCode.ILLEGAL_GENERATION] * 3


def test_the_short_way_opens_by_itself_under_load(caplog: pytest.LogCaptureFixture) -> None:
    with running() as broker, broker.client() as client:
        broker.on_loop(broker.broker.ensure_offsets_topic)
        broker.on_loop(lambda: broker.broker.create_topic("t", 1, {}))
        number = 0
        while broker.broker.short_way.transcoder is None:
            assert number < 1_000_000
            client.ask(
                OFFSET_COMMIT,
                8,
                group_id="g",
                generation_id_or_member_epoch=-1,
                topics=[{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": number}]}],
            )
            number += 1
        assert number >= _COMMITS_BEFORE
        last = client.ask(OFFSET_FETCH, 5, group_id="g", topics=[{"name": "t", "partition_indexes": [0]}])
        assert last.topics[0].partitions[0].committed_offset == number - 1
    assert "could not be prepared" not in caplog.text


@pytest.mark.parametrize(
    "settings", [{"offsets.topic.compression.codec": "1"}, {"inter.broker.protocol.version": "2.0"}]
)
def test_with_other_records_than_the_usual_it_stays_closed(settings: dict[str, str]) -> None:
    others = set(threading.enumerate())  # that of another test's broker may still be at it
    with running(settings=settings) as broker:
        for _ in range(2 * _COMMITS_BEFORE):
            broker.on_loop(broker.broker.short_way.count)
        assert broker.broker.short_way.transcoder is None
        assert "kohort-short-way" not in {thread.name for thread in threading.enumerate() if thread not in others}


def test_the_general_way_of_this_test_is_the_brokers() -> None:
    """Partitions that there are not are the broker's to find."""
    with running() as broker:
        broker.on_loop(lambda: broker.broker.create_topic("orders", 1, {}))
        long = generally(frame_of(a_commit(), 8))
        values, unknown = broker.on_loop(lambda: committed_values(broker.broker, long))
        assert list(values) == [TopicPartition("orders", 0)]
        assert not unknown


def test_bytes_that_are_no_request_are_left_to_the_general_way(transcoder: CommitTranscoder) -> None:
    whole = frame_of(a_commit(), 8)
    body_at = read_header(whole).body_at
    for end in range(body_at, len(whole)):
        cut = whole[:end]
        assert transcode(transcoder, cut) is None
        with pytest.raises(BadRequest):
            generally(cut)
