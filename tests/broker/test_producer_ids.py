"""Producer ids are given once, whatever happens in between."""

import json
from pathlib import Path
from typing import Any

import pytest

from kohort.broker.producer_ids import BLOCK_SIZE, NAME, ProducerIds
from kohort.errors import CorruptLog, ErrorCode, StorageFailed
from kohort.log.crash_images import crash_points
from kohort.log.documents import FileDocuments
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.files import read_whole, write_whole
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import SimulatedFiles
from tests.broker.data_plane import INIT_PRODUCER_ID, batch, make_topic, produce
from tests.broker.running import running
from tests.broker.wire_client import WireClient

DATA = "/data"


def files() -> SimulatedFiles:
    return SimulatedFiles({DATA: None})


def init(client: WireClient, version: int = 3, **fields: Any) -> tuple[int, int, int]:
    answer = client.ask(INIT_PRODUCER_ID, version, transaction_timeout=60_000, **fields)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_a_new_id_each_time(version: int) -> None:
    with running() as broker, broker.client() as client:
        assert [init(client, version) for _ in range(3)] == [(ErrorCode.NONE, number, 0) for number in range(3)]


def test_an_idempotent_producer_works_with_the_id_it_got() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        _, producer, epoch = init(client)
        first = batch("a", producer=producer, epoch=epoch, sequence=0)
        assert [produce(client, first).base_offset for _ in range(2)] == [0, 0]


def test_a_producer_that_lost_its_way_gets_another_id() -> None:
    with running() as broker, broker.client() as client:
        assert init(client) == (ErrorCode.NONE, 0, 0)
        assert init(client, producer_id=0, producer_epoch=0) == (ErrorCode.NONE, 1, 0)


@pytest.mark.parametrize(
    "half",
    [{"producer_id": 5, "producer_epoch": -1}, {"producer_id": -1, "producer_epoch": 5}, {"transactional_id": ""}],
)
def test_half_of_an_id_is_no_request(half: dict[str, Any]) -> None:
    with running() as broker, broker.client() as client:
        assert init(client, **half) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_ids_go_on_behind_those_that_were_given_before_a_restart(tmp_path: Path) -> None:
    given = []
    for _ in range(3):
        with running(tmp_path) as broker, broker.client() as client:
            given += [init(client)[1] for _ in range(2)]
    assert given == [0, 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE, 2 * BLOCK_SIZE + 1]


def test_a_power_cut_gives_no_id_twice() -> None:
    start = {DATA: None}
    recording = RecordingFiles(SimulatedFiles(start))
    ids = ProducerIds(FileDocuments(recording, DATA), [])
    last_given = [-1] * len(recording.operations)
    for _ in range(2 * BLOCK_SIZE + 1):
        last = ids.new()
        last_given += [last - 1] * (len(recording.operations) - len(last_given))
    for number, disk in enumerate(crash_points(start, recording.operations)):
        for image in disk.images(40):
            known = last_given[number] if number < len(last_given) else last
            assert ProducerIds(FileDocuments(SimulatedFiles(image), DATA), []).new() > known


def test_a_directory_of_another_broker_goes_on_behind_the_ids_in_its_logs(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", producer=4711, epoch=0, sequence=0))
    (tmp_path / NAME).unlink()
    with running(tmp_path) as broker, broker.client() as client:
        assert init(client) == (ErrorCode.NONE, 4712, 0)


def test_an_id_that_a_client_made_up_uses_none_up(tmp_path: Path) -> None:
    with running(tmp_path) as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a", producer=(1 << 63) - 1, epoch=0, sequence=0))
        assert init(client) == (ErrorCode.NONE, 0, 0)
    with running(tmp_path) as broker, broker.client() as client:
        assert init(client) == (ErrorCode.NONE, BLOCK_SIZE, 0)


def test_no_id_is_given_before_the_disk_knows() -> None:
    disk = FaultyFiles(files())
    calls_before = ProducerIds(FileDocuments(disk, DATA), []) and disk.calls
    disk = FaultyFiles(files(), Fault(call=calls_before + 3, number=5))
    ids = ProducerIds(FileDocuments(disk, DATA), [])
    with pytest.raises(StorageFailed):
        ids.new()
    assert ids.new() == 0


@pytest.mark.parametrize(
    "told", [b"", b"[]", b'{"version": 1}', b'{"version": 2, "next_block": 0}', b'{"version": 1, "next_block": -1}']
)
def test_a_file_that_says_nothing_is_no_place_to_begin(told: bytes) -> None:
    disk = files()
    write_whole(disk, f"{DATA}/{NAME}", told)
    with pytest.raises(CorruptLog, match=NAME):
        ProducerIds(FileDocuments(disk, DATA), [])


def test_the_file_tells_where_the_next_block_begins() -> None:
    disk = files()
    ProducerIds(FileDocuments(disk, DATA), []).new()
    assert json.loads(read_whole(disk, f"{DATA}/{NAME}")) == {"version": 1, "next_block": BLOCK_SIZE}
