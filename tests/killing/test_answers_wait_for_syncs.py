"""`flush=always` end to end: sockets, threads and files are real, and no answer leaves before its bytes are synced."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kohort.errors import ErrorCode, StorageFailed
from kohort.log.flusher import Flusher, Told
from kohort.log.partition import Log
from kohort.log.recorded_files import RecordingFiles
from tests.broker.running import Running, running
from tests.broker.wire_client import WireClient
from tests.killing.witness import TooSoon, Witness

METADATA, OFFSET_COMMIT, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 3, 8, 10, 11, 14
INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 25, 26, 28
DELETE_GROUPS, OFFSET_DELETE = 42, 47
WRITING = (
    OFFSET_COMMIT,
    SYNC_GROUP,
    INIT_PRODUCER_ID,
    ADD_OFFSETS_TO_TXN,
    TXN_OFFSET_COMMIT,
    END_TXN,
    DELETE_GROUPS,
    OFFSET_DELETE,
)
TOPIC = "orders"
ROUNDS = 5
PATIENCE_S = 30


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> Witness:
    seen = Witness()
    seen.watch(monkeypatch.setattr)
    return seen


class Marks:
    """`mark-1`, `mark-2`, ..."""

    def __init__(self) -> None:
        self._given = 0

    def new(self) -> str:
        self._given += 1
        return f"mark-{self._given}"


def work(client: WireClient) -> None:
    """Everything that asks for something to be kept, a few times, each with a mark of its own."""
    marks = Marks()
    client.ask(METADATA, 4, topics=[{"name": TOPIC}], allow_auto_topic_creation=True)
    for _ in range(ROUNDS):
        group = marks.new()
        member = _join(client, group)
        _good(client.ask(SYNC_GROUP, 2, **member, assignments=[_share(member, marks.new())]))
        _commit(client, group, marks.new(), member)
        _transact(client, "others", marks)
        doomed = marks.new()
        _commit(client, doomed, marks.new())
        _good(client.ask(OFFSET_DELETE, 0, group_id=doomed, topics=[{"name": TOPIC, "partitions": [_first()]}]))
        _commit(client, doomed, marks.new())
        _good(client.ask(DELETE_GROUPS, 1, groups_names=[doomed]).results[0])


def _first() -> dict[str, int]:
    return {"partition_index": 0}


def _join(client: WireClient, group: str, **more: Any) -> dict[str, Any]:
    client.ask(FIND_COORDINATOR, 1, key=group, key_type=0)
    joined = client.ask(
        JOIN_GROUP,
        5,
        group_id=group,
        session_timeout=30_000,
        rebalance_timeout=30_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
        **{"member_id": "", **more},
    )
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return _join(client, group, **more, member_id=joined.member_id)
    _good(joined)
    return {"group_id": group, "generation_id": joined.generation_id, "member_id": joined.member_id}


def _share(member: dict[str, Any], mark: str) -> dict[str, Any]:
    return {"member_id": member["member_id"], "assignment": mark.encode()}


def _commit(client: WireClient, group: str, mark: str, member: dict[str, Any] | None = None) -> None:
    who = {"generation_id_or_member_epoch": -1}
    if member is not None:
        who = {"generation_id_or_member_epoch": member["generation_id"], "member_id": member["member_id"]}
    partition = {**_first(), "committed_offset": 1, "committed_metadata": mark}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    _good(client.ask(OFFSET_COMMIT, 7, group_id=group, **who, topics=topics).topics[0].partitions[0])


def _transact(client: WireClient, group: str, marks: Marks) -> None:
    transactional_id = marks.new()
    client.ask(FIND_COORDINATOR, 1, key=transactional_id, key_type=1)
    producer = client.ask(INIT_PRODUCER_ID, 1, transactional_id=transactional_id, transaction_timeout=60_000)
    _good(producer)
    who = {"transactional_id": transactional_id, "producer_id": producer.producer_id}
    who["producer_epoch"] = producer.producer_epoch
    _good(client.ask(ADD_OFFSETS_TO_TXN, 1, **who, group_id=group))
    partition = {**_first(), "committed_offset": 1, "committed_metadata": marks.new()}
    del who["transactional_id"]  # it is not part of what a commit of offsets writes down
    topics = [{"name": TOPIC, "partitions": [partition]}]
    committed = client.ask(TXN_OFFSET_COMMIT, 1, **who, transactional_id="", group_id=group, topics=topics)
    _good(committed.topics[0].partitions[0])
    _good(client.ask(END_TXN, 1, **who, transactional_id=transactional_id, committed=True))


def _good(answer: Any) -> None:
    assert answer.error_code == ErrorCode.NONE, answer


def test_no_answer_leaves_before_what_it_promises_is_synced(tmp_path: Path, witness: Witness) -> None:
    with running(tmp_path / "data", files=witness.files) as broker, broker.client() as client:
        work(client)
    assert witness.judge(WRITING) == dict.fromkeys(WRITING, ROUNDS) | {OFFSET_COMMIT: 3 * ROUNDS}


def test_a_static_member_that_comes_back_is_answered_when_its_new_id_is_synced(
    tmp_path: Path, witness: Witness
) -> None:
    with running(tmp_path / "data", files=witness.files) as broker, broker.client() as client:
        member = _join(client, "g", group_instance_id="mark-1")
        _good(client.ask(SYNC_GROUP, 2, **member, assignments=[_share(member, "mark-2")]))
        since = len(witness.events)
        again = _join(client, "g", group_instance_id="mark-1")
        assert again["member_id"] != member["member_id"]
    assert witness.judge([JOIN_GROUP], since) == {JOIN_GROUP: 1}


def test_librdkafka_is_not_answered_before_the_sync_either(tmp_path: Path, witness: Witness) -> None:
    marks = Marks()
    with running(tmp_path / "data", files=witness.files) as broker:
        settings = {"bootstrap.servers": broker.address, "log_level": 0}
        consumer = Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
        with broker.client() as client:
            client.ask(METADATA, 4, topics=[{"name": TOPIC}], allow_auto_topic_creation=True)
        for offset in range(ROUNDS):
            position = TopicPartition(TOPIC, 0, offset, marks.new())
            consumer.commit(offsets=[position], asynchronous=False)
            producer = Producer({**settings, "transactional.id": marks.new()})
            producer.init_transactions(PATIENCE_S)
            producer.begin_transaction()
            producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), PATIENCE_S)
            producer.commit_transaction(PATIENCE_S)
        consumer.close()
    assert witness.judge([OFFSET_COMMIT, END_TXN]) == {OFFSET_COMMIT: ROUNDS, END_TXN: ROUNDS}


def _told_too_soon(flusher: Flusher, appends: Iterable[tuple[Log, int, Told]]) -> None:
    """Everybody is told at once, and synced afterwards."""
    them = list(appends)
    flusher.tell([told for _, _, told in them], None)
    _then_all(flusher, [(log, offset, _hear_nothing) for log, offset, _ in them])


_then_all = Flusher.then_all


def _hear_nothing(_: StorageFailed | None) -> None:
    pass


def _forget_directory(_: RecordingFiles, __: str) -> None:
    pass


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [(Flusher, "then_all", _told_too_soon), (RecordingFiles, "sync_dir", _forget_directory)],
    ids=["answered before the sync", "directories are not synced"],
)
def test_the_judge_finds_a_broker_that_answers_too_soon(
    tmp_path: Path,
    witness: Witness,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    bug: Callable[..., None],
) -> None:
    monkeypatch.setattr(owner, name, bug)
    with running(tmp_path / "data", files=witness.files) as broker:
        _work_on(broker)
    with pytest.raises(TooSoon):
        witness.judge(WRITING)


def _work_on(broker: Running) -> None:
    with broker.client() as client:
        work(client)
