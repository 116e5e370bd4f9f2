"""Topics on a disk: what is written down, what is refused, and what a crash or a failing disk leaves behind."""

import errno
import json
from collections.abc import Callable, Mapping

import pytest

from kohort.broker.setting_kinds import BadSetting
from kohort.broker.storage import LocalStorage
from kohort.broker.topic_settings import topic_config
from kohort.broker.topics import InvalidTopic, TopicExists, Topics
from kohort.clock import VirtualClock
from kohort.config import FlushMode, LogConfig
from kohort.errors import CorruptLog, KohortError, StorageFailed
from kohort.log.crash_images import crash_points
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.files import Files
from kohort.log.partition import AppendOrigin
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles
from tests.log.log_bench import batch

DATA = "/data"
FILE = "/data/topics.json"


def opened(files: Files) -> Topics:
    def config_of(_: str, settings: Mapping[str, str]) -> LogConfig:
        return topic_config(LogConfig(), settings)

    storage = LocalStorage(files, DATA, broker_id=0, flush_mode=FlushMode.ALWAYS)
    return Topics(storage, VirtualClock(), config_of)


def get(topics: Topics, name: str):
    topic = topics.get(name)
    assert topic is not None
    return topic


def closed_image(topics: Topics, files: SimulatedFiles) -> Image:
    topics.directory.close()
    return files.image()


def partitions_of(topics: Topics, name: str) -> list[int]:
    return sorted(partition for topic, partition in topics.directory.logs if topic == name)


def directories(image: Mapping[str, bytes | None]) -> set[str]:
    return {path.removeprefix("/data/") for path, data in image.items() if data is None and path.count("/") == 2}


class TestMakingThem:
    def test_a_topic_is_still_there_after_a_restart_with_its_id_partitions_and_settings(self):
        files = SimulatedFiles()
        first = opened(files)
        made = first.create("orders", 3, {"retention.ms": "1000"})
        image = closed_image(first, files)

        second = opened(SimulatedFiles(image))

        assert get(second, "orders") == made
        assert second.by_id(made.topic_id) == made
        assert partitions_of(second, "orders") == [0, 1, 2]
        assert second.log("orders", 2).config.retention_ms == 1000

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "x" * 250, "a\0", "a\n"])
    def test_a_name_that_is_none_is_refused(self, name: str):
        topics = opened(SimulatedFiles())

        with pytest.raises(InvalidTopic):
            topics.create(name, 1, {})
        assert not list(topics)

    @pytest.mark.parametrize("name", ["a", "x" * 249, "...", "-", "A_1-b"])
    def test_every_other_name_is_taken(self, name: str):
        topics = opened(SimulatedFiles())

        topics.create(name, 1, {})

        assert topics.log(name, 0) is not None

    def test_a_name_is_taken_once(self):
        topics = opened(SimulatedFiles())
        topics.create("orders", 1, {})

        with pytest.raises(TopicExists):
            topics.create("orders", 1, {})

    @pytest.mark.parametrize(("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
    def test_names_that_differ_only_in_dots_and_underscores_collide(self, first: str, second: str):
        topics = opened(SimulatedFiles())
        topics.create(first, 1, {})

        with pytest.raises(InvalidTopic, match="collides"):
            topics.create(second, 1, {})

    def test_a_wrong_setting_leaves_nothing_behind(self):
        files = SimulatedFiles()
        topics = opened(files)
        before = files.image()

        with pytest.raises(BadSetting):
            topics.create("orders", 1, {"segment.bytes": "-1"})
        assert files.image() == before

    def test_growing_keeps_what_is_there(self):
        topics = opened(SimulatedFiles())
        topic = topics.create("orders", 1, {})
        topics.log("orders", 0).append(batch("v"), origin=AppendOrigin.COORDINATOR)

        topics.add_partitions(topic, 3)

        assert get(topics, "orders").partition_count == 3
        assert [topics.log("orders", number).log_end_offset for number in range(3)] == [1, 0, 0]

    def test_changed_settings_reach_the_logs_at_once(self):
        topics = opened(SimulatedFiles())
        topic = topics.create("orders", 2, {"retention.ms": "1"})

        topics.change_settings(topic, {"segment.bytes": "100"})

        assert [topics.log("orders", n).config.segment_bytes for n in range(2)] == [100, 100]
        assert topics.log("orders", 0).config.retention_ms == LogConfig().retention_ms


class TestDeletingThem:
    def test_a_deleted_topic_is_gone_and_its_name_is_free(self):
        files = SimulatedFiles()
        topics = opened(files)
        topic = topics.create("orders", 2, {})

        topics.delete(topic)

        assert topics.get("orders") is None
        assert topics.by_id(topic.topic_id) is None
        assert topics.log("orders", 0) is None
        again = topics.create("orders", 1, {})
        assert again.topic_id != topic.topic_id
        assert partitions_of(opened(SimulatedFiles(closed_image(topics, files))), "orders") == [0]

    def test_a_topic_with_a_partition_that_could_not_be_opened_can_be_deleted(self):
        files = SimulatedFiles()
        first = opened(files)
        first.create("orders", 2, {})
        first.log("orders", 1).append(batch("v"), origin=AppendOrigin.COORDINATOR)
        image = closed_image(first, files)
        log = next(path for path in image if path.startswith("/data/orders-1/") and path.endswith(".log"))
        image[log] = b"\xff" * len(image[log])
        del image["/data/.kafka_cleanshutdown"]
        second = opened(SimulatedFiles(image))
        assert second.directory.failed

        second.delete(get(second, "orders"))

        assert not second.directory.failed
        assert not list(second)

    def test_a_topic_whose_log_has_failed_meanwhile_can_be_deleted(self):
        inner = SimulatedFiles()
        files = FaultyFiles(inner)
        topics = opened(files)
        topics.create("orders", 1, {})
        log = topics.log("orders", 0)
        files._fault = Fault(call=files.calls, number=errno.EIO)
        with pytest.raises(StorageFailed):
            log.append(batch("v"), origin=AppendOrigin.COORDINATOR)
        assert log.failure is not None

        topics.delete(get(topics, "orders"))

        assert topics.get("orders") is None
        assert not [name for name in directories(inner.image()) if not name.endswith("-delete")]


class TestWhatAnotherBrokerLeft:
    def test_directories_that_are_told_nowhere_are_topics(self):
        files = SimulatedFiles()
        first = opened(files)
        first.create("orders", 3, {})
        image = closed_image(first, files)
        del image[FILE]

        second = opened(SimulatedFiles(image))

        assert get(second, "orders").partition_count == 3

    def test_partitions_that_another_broker_kept_elsewhere_are_missing_not_empty(self):
        files = SimulatedFiles()
        first = opened(files)
        first.create("orders", 3, {})
        image = closed_image(first, files)
        image = {path: data for path, data in image.items() if path != FILE and not path.startswith("/data/orders-1")}

        files = SimulatedFiles(image)
        second = opened(files)
        assert partitions_of(second, "orders") == [0, 2]
        third = opened(SimulatedFiles(closed_image(second, files)))

        assert get(third, "orders").partition_count == 3
        assert third.log("orders", 1) is None

    def test_a_directory_that_was_lost_is_not_replaced_by_an_empty_one(self):
        files = SimulatedFiles()
        first = opened(files)
        first.create("orders", 2, {})
        image = {path: data for path, data in closed_image(first, files).items() if "orders-0" not in path}

        second = opened(SimulatedFiles(image))

        assert second.log("orders", 0) is None
        assert second.log("orders", 1) is not None

    def test_a_directory_with_a_number_beyond_all_measure_is_not_taken_for_a_partition(self):
        files = SimulatedFiles({DATA: None, "/data/backup-20240101": None})

        topics = opened(files)

        assert not list(topics)


ENTRY = {"id": "7e9f2a2e-5c1c-4b0e-8f7a-111111111111", "partitions": 1, "made": 1, "settings": {}, "doomed": False}


def told(**changes: object) -> bytes:
    return json.dumps({"version": 1, "topics": {"t": {**ENTRY, **changes}}}).encode()


class TestTheFile:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\0" * 40,
            b"\xff\xfe",
            b"{",
            b"[]",
            b"null",
            b"[" * 100_000,
            b'{"topics": {}}',
            b'{"version": 2, "topics": {}}',
            b'{"version": 1, "topics": []}',
            b'{"version": 1, "topics": {"t": null}}',
            b'{"version": 1, "topics": {}, "topics": {}}',
            json.dumps({"version": 1, "topics": {"../t": ENTRY}}).encode(),
            json.dumps({"version": 1, "topics": {"t": ENTRY, "u": ENTRY}}).encode(),
            told(id="7"),
            told(id=None),
            told(partitions=0),
            told(partitions=-1),
            told(partitions=True),
            told(partitions=2_000_000_000, made=2_000_000_000),
            told(made=2),
            told(settings=None),
            told(settings={"retention.ms": 5}),
            told(settings={"retention.ms": "soon"}),
            told(settings={"no.such.setting": "1"}),
            told(doomed=None),
        ],
    )
    def test_a_file_that_we_would_not_write_is_refused_and_nothing_is_touched(self, content: bytes):
        files = SimulatedFiles({DATA: None, FILE: content})

        with pytest.raises(CorruptLog, match=FILE):
            opened(files)
        assert files.image() == {DATA: None, FILE: content}

    def test_the_directory_can_be_opened_after_a_refusal(self):
        files = SimulatedFiles({DATA: None, FILE: b"{"})
        with pytest.raises(CorruptLog):
            opened(files)

        files.unlink(FILE)

        assert not list(opened(files))


def prepared() -> SimulatedFiles:
    """Two topics, one of them with a record."""
    files = SimulatedFiles()
    topics = opened(files)
    topics.create("kept", 1, {"retention.ms": "7"})
    topics.log("kept", 0).append(batch("v"), origin=AppendOrigin.COORDINATOR)
    topics.create("old", 2, {})
    topics.directory.close()
    return files


ACTIONS: dict[str, Callable[[Topics], object]] = {
    "create": lambda topics: topics.create("new", 3, {"segment.bytes": "99"}),
    "grow": lambda topics: topics.add_partitions(get(topics, "old"), 4),
    "delete": lambda topics: topics.delete(get(topics, "old")),
    "settings": lambda topics: topics.change_settings(get(topics, "old"), {"segment.ms": "5"}),
}


def state(topics: Topics) -> dict[str, tuple[int, tuple[tuple[str, str], ...]]]:
    for topic in topics:
        assert partitions_of(topics, topic.name) == list(range(topic.partition_count)), topic
        assert {topics.log(topic.name, n).config for n in range(topic.partition_count)} == {
            topics.config_of(topic.name)
        }
    assert {name for name, _ in topics.directory.logs} == {topic.name for topic in topics}
    assert not topics.directory.failed
    assert topics.log("kept", 0).log_end_offset == 1
    return {topic.name: (topic.partition_count, tuple(topic.settings.items())) for topic in topics}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_crash_at_any_moment_leaves_the_topics_of_before_or_of_after(action: str):
    base = prepared().image()
    recording = RecordingFiles(SimulatedFiles(base))
    topics = opened(recording)
    before = state(topics)
    start = len(recording.operations)
    ACTIONS[action](topics)
    after = state(topics)
    assert after != before

    seen = 0
    for number, disk in enumerate(crash_points(base, recording.operations)):
        if number < start:
            continue
        for image in disk.images(6):
            found = state(opened(SimulatedFiles(image)))
            assert found in (before, after)
            seen += 1
    assert found == after
    assert seen > 5


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_disk_that_fails_at_any_call_leaves_the_topics_of_before_or_of_after(action: str, persistent: bool):
    counting = FaultyFiles(SimulatedFiles(prepared().image()))
    topics = opened(counting)
    before, start = state(topics), counting.calls
    ACTIONS[action](topics)
    after, calls = state(topics), counting.calls - start

    for call in range(start, start + calls):
        inner = SimulatedFiles(prepared().image())
        topics = opened(FaultyFiles(inner, Fault(call=call, number=errno.EIO, persistent=persistent)))
        try:
            ACTIONS[action](topics)
        except StorageFailed:
            if action == "create":
                assert topics.get("new") is None
            if action == "create" and not persistent:
                topics.create("new", 3, {"segment.bytes": "99"})
        found = state(opened(SimulatedFiles(inner.image())))
        assert found in (before, after), call


def test_finding_a_start_on_a_failing_disk_fails_in_our_words():
    """Found by the simulation: one look at the disk let the operating system's own error through."""
    files = SimulatedFiles()
    first = opened(files)
    first.create("orders", 2, {})
    image = closed_image(first, files)
    counting = FaultyFiles(SimulatedFiles(image))
    opened(counting)
    failed = 0
    for call in range(counting.calls):
        try:
            opened(FaultyFiles(SimulatedFiles(image), Fault(call=call, number=errno.EIO)))
        except KohortError:
            failed += 1
    assert failed
