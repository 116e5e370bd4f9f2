"""`kohort migrate`: what clients read from the copy, where groups go on, and what is refused."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from kohort.log.checkpoints import LOG_START_OFFSET, write_offsets
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition
from kohort.records.batch import Record
from kohort.testing import Broker
from tests.cli.commands import ctrl_c_as_usual, interrupt_this_process, run_main, silent_broker
from tests.cli.group_scenes import HOSTILE, commit, commit_as_is, member
from tests.golden_sets import ROOT
from tests.migration.scenes import TOPIC, copied, live, migrate, offsets_of, read_all, saved

PATIENCE_S = 60.0
ESCAPE = "\x1b"


@pytest.fixture
def to() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def settings_of(broker: Broker, topic: str = TOPIC) -> dict[str, str]:
    """Those of its own."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    told = client.describe_configs([resource])[resource].result(PATIENCE_S)
    return {name: entry.value for name, entry in told.items() if entry.source == 1}


def produce(broker: Broker, count: int, partition: int = 0, keys: int = 0, topic: str = TOPIC) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd"})
    for number in range(count):
        key = b"%d" % (number % keys) if keys else None
        producer.produce(topic, b"record %d" % number, key=key, partition=partition, headers=[("n", b"%d" % number)])
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("seed", range(6))
def test_what_a_dead_broker_has_left_is_copied_as_readers_of_committed_data_see_it(
    tmp_path: Path, to: Broker, seed: int
) -> None:
    logs = saved(tmp_path / "logs", {"orders-0": seed, "orders-1": 100 + seed})
    report = tmp_path / "report.json"
    done = migrate(tmp_path / "logs", to, "--report", report)
    assert done.code == 0, done
    told = json.loads(report.read_text())
    assert told["verified"] is True
    for number in (0, 1):
        log = logs[f"orders-{number}"]
        (row,) = (row for row in told["partitions"] if row["partition"] == number)
        assert read_all(to, partition=number) == copied(log.visible())
        assert (row["source_start"], row["source_end"], row["source_log_end"]) == (log.start, log.stable_end, log.end)
        assert (row["copied"], row["aborted"], row["verified"]) == (len(log.visible()), log.aborted(), True)
        assert row["undecided"] == log.end - log.stable_end
    again = migrate(tmp_path / "logs", to, "--format", "json")
    assert again.code == 0, again
    rows = json.loads(again.stdout)["partitions"]
    assert [(row["copied"], row["found"]) for row in rows] == [(0, len(log.visible())) for log in logs.values()]


def test_records_that_were_deleted_are_not_copied(tmp_path: Path, to: Broker) -> None:
    log = saved(tmp_path, {"orders-0": 2})["orders-0"]
    start = log.visible()[10].offset
    write_offsets(RealFiles(), str(tmp_path / LOG_START_OFFSET), {TopicPartition(TOPIC, 0): start})
    assert migrate(tmp_path, to).code == 0
    assert read_all(to) == copied(log.visible(start))


def test_a_directory_of_kohort_brings_settings_and_groups(tmp_path: Path, to: Broker) -> None:
    settings = {"cleanup.policy": "compact", "max.message.bytes": "2000000", "message.format.version": "2.6"}
    with Broker(tmp_path) as source:
        source.create_topic(TOPIC, 3, settings)
        produce(source, 30, keys=30)
        commit(source, "billing", {0: 10, 1: 0}, "by hand")
    done = migrate(tmp_path, to)
    assert done.code == 0, done
    assert [record.value for record in read_all(to)] == [b"record %d" % number for number in range(30)]
    assert settings_of(to) == {"cleanup.policy": "compact", "max.message.bytes": "2000000"}
    assert offsets_of(to, "billing") == {(TOPIC, 0): (10, "by hand"), (TOPIC, 1): (0, "by hand")}
    assert "'message.format.version' is left out" in done.stderr


def test_a_live_cluster_brings_all_of_it_too(to: Broker) -> None:
    with Broker() as source:
        source.create_topic(TOPIC, 2, {"retention.ms": 12345678})
        source.create_topic("empty")
        produce(source, 50)
        commit(source, "billing", {0: 20})
        done = migrate(live(source), to)
        assert done.code == 0, done
        assert read_all(to) == read_all(source)
    assert settings_of(to) == {"retention.ms": "12345678"}
    assert offsets_of(to, "billing") == {(TOPIC, 0): (20, "")}
    assert done.stdout.split() == [
        *("TOPIC", "PARTITION", "FOUND", "COPIED", "ABORTED", "MARKERS", "SOURCE", "DESTINATION", "STATUS"),
        *("empty", "0", "0", "0", "0", "0", "0-0", "0-0", "Verified"),
        *("orders", "0", "0", "50", "0", "0", "0-50", "0-50", "Verified"),
        *("orders", "1", "0", "0", "0", "0", "0-0", "0-0", "Verified"),
        *("GROUP", "OFFSETS", "LEFT-OUT", "STATUS", "billing", "1", "0", "Verified"),
    ]


def test_of_a_live_cluster_what_was_aborted_or_is_open_is_left_out(to: Broker) -> None:
    with Broker() as source:
        source.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": source.bootstrap_servers, "transactional.id": "t", "log_level": 0})
        producer.init_transactions(PATIENCE_S)
        for number in range(9):
            producer.begin_transaction()
            producer.produce(TOPIC, b"%d" % number)
            producer.flush(PATIENCE_S)
            if number % 3 == 1:
                producer.abort_transaction(PATIENCE_S)
            elif number < 8:
                producer.commit_transaction(PATIENCE_S)
        commit(source, "billing", {0: 6})
        commit(source, "at-the-end", {0: 17})
        done = migrate(live(source), to, "--format", "json")
        producer.abort_transaction(PATIENCE_S)
    assert done.code == 0, done
    assert [record.value for record in read_all(to)] == [b"0", b"2", b"3", b"5", b"6"]
    (row,) = json.loads(done.stdout)["partitions"]
    assert (row["aborted"], row["control"], row["undecided"]) == (3, 8, 1)
    assert "1 offsets from 16 on wait for an open transaction: not copied" in done.stderr
    assert offsets_of(to, "billing") == {(TOPIC, 0): (2, "")}
    assert offsets_of(to, "at-the-end") == {(TOPIC, 0): (5, "")}


@pytest.mark.parametrize("from_disk", [True, False])
def test_a_group_goes_on_at_the_record_where_it_was_though_the_cleaner_has_made_holes(
    tmp_path: Path, to: Broker, from_disk: bool
) -> None:
    with Broker(tmp_path) as source:
        source.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
        produce(source, 200, keys=90)
        source.compact(TOPIC)
        kept = read_kept(source)
        assert len(kept) < 200
        for offset in range(0, 201, 7):
            commit(source, f"group-{offset}", {0: offset})
        if not from_disk:
            assert migrate(live(source), to).code == 0
    if from_disk:
        assert migrate(tmp_path, to).code == 0
    assert read_all(to) == copied(kept)
    for offset in range(0, 201, 7):
        wanted = sum(record.offset < offset for record in kept)
        assert offsets_of(to, f"group-{offset}") == {(TOPIC, 0): (wanted, "")}


def read_kept(broker: Broker) -> list[Record]:
    """A consumer meets holes."""
    from confluent_kafka import Consumer

    from kohort.records.batch import Header

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    consumer.assign([Place(TOPIC, 0, 0)])
    found: list[Record] = []
    while not found or found[-1].offset < 199:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        headers = tuple(Header(*pair) for pair in message.headers() or ())
        found.append(Record(message.offset(), message.timestamp()[1], message.key(), message.value(), headers))
    consumer.close()
    return found


def test_groups_of_a_golden_log_directory_go_on_in_topics_that_are_there(tmp_path: Path, to: Broker) -> None:
    golden = ROOT / "kafka-2.6.3-ibp-2.6"
    for path in golden.glob("__consumer_offsets-*"):
        shutil.copytree(path, tmp_path / path.name)
    log = saved(tmp_path, {"k26.payments-0": 7, "k26.payments-1": 8})["k26.payments-0"]
    done = migrate(tmp_path, to, "--format", "json")
    assert done.code == 0, done
    wanted = sum(record.offset < 50 for record in log.visible())
    assert offsets_of(to, "k26.g-txn-race")["k26.payments", 0] == (wanted, "plain, later in the log")
    assert offsets_of(to, "k26.g-simple")["k26.payments", 0][0] == len(log.visible())
    told = {group["group"]: group for group in json.loads(done.stdout)["groups"]}
    assert (told["k26.g-txn-race"]["translated"], told["k26.g-simple"]["left_out"]) == (2, 4)
    assert "offsets of groups are left out" in done.stderr
    assert "nobody knows the settings of these topics" in done.stderr
    assert settings_of(to, "k26.payments")["retention.ms"] == "-1"


def test_only_what_was_asked_for_is_copied(to: Broker) -> None:
    with Broker() as source:
        for topic in (TOPIC, "payments"):
            source.create_topic(topic)
            produce(source, 5, topic=topic)
        commit(source, "billing", {0: 3})
        commit(source, "other", {0: 3})
        assert migrate(live(source), to, "--topic", TOPIC, "--group", "billing").code == 0
        for option, name, told in (
            ("--topic", "nowhere", "the source has no topic 'nowhere'"),
            ("--topic", "__consumer_offsets", "topic '__consumer_offsets' is the cluster's own"),
            ("--group", f"no{ESCAPE}[31m", "the source has no offsets of group 'no\\x1b[31m'"),
        ):
            done = migrate(live(source), to, option, name)
            assert (done.code, done.stderr.count("\n")) == (1, 1), done
            assert told in done.stderr
    assert set(to.groups()) == {"billing"}
    assert set(AdminClient({"bootstrap.servers": to.bootstrap_servers}).list_topics().topics) >= {TOPIC}
    assert "payments" not in AdminClient({"bootstrap.servers": to.bootstrap_servers}).list_topics().topics


def test_a_dry_run_changes_nothing_and_tells_what_would_be_done(tmp_path: Path, to: Broker) -> None:
    log = saved(tmp_path, {"orders-0": 4})["orders-0"]
    done = migrate(tmp_path, to, "--dry-run", "--format", "json")
    assert done.code == 0, done
    told = json.loads(done.stdout)
    assert (told["verified"], told["dry_run"]) == (False, True)
    (row,) = told["partitions"]
    assert (row["copied"], row["found"], row["verified"]) == (len(log.visible()), 0, None)
    assert "nothing was changed" in done.stderr
    assert TOPIC not in AdminClient({"bootstrap.servers": to.bootstrap_servers}).list_topics().topics


def refused(done: object, told: str) -> None:
    code, stdout, stderr = done  # type: ignore[misc]
    assert code == 1, stderr
    lines = [line for line in stderr.splitlines() if line.startswith("kohort: not all is")]
    assert len(lines) == 1
    assert told in lines[0]
    assert f"Error: {told}"[:60] in stdout


def test_a_destination_that_holds_something_else_is_left_as_it_is(tmp_path: Path, to: Broker) -> None:
    saved(tmp_path, {"orders-0": 4, "payments-0": 5})
    to.create_topic(TOPIC)
    produce(to, 3)
    done = migrate(tmp_path, to)
    refused(done, "the destination holds something else at offset 0")
    assert [record.value for record in read_all(to)] == [b"record 0", b"record 1", b"record 2"]
    assert read_all(to, "payments")


def test_a_destination_that_goes_on_behind_the_source_is_left_as_it_is(tmp_path: Path, to: Broker) -> None:
    log = saved(tmp_path, {"orders-0": 4})["orders-0"]
    assert migrate(tmp_path, to).code == 0
    produce(to, 1)
    count = len(log.visible())
    refused(migrate(tmp_path, to), f"the destination holds records from offset {count} on that the source does not")


def test_a_destination_with_other_partitions_is_left_as_it_is(tmp_path: Path, to: Broker) -> None:
    saved(tmp_path, {"orders-0": 4, "orders-1": 5})
    to.create_topic(TOPIC)
    done = migrate(tmp_path, to)
    assert done.code == 1
    assert "topic 'orders' has 1 partitions in the destination, 2 in the source" in done.stderr
    assert read_all(to) == []


def test_a_group_with_members_in_the_destination_is_left_alone(to: Broker) -> None:
    with Broker() as source:
        source.create_topic(TOPIC)
        produce(source, 5)
        commit(source, "readers", {0: 3})
        to.create_topic(TOPIC)
        with member(to, "readers", "reader-1"):
            done = migrate(live(source), to)
    assert done.code == 1
    assert "group 'readers' has members in the destination, and is Stable: stop them first" in done.stderr
    assert offsets_of(to, "readers") == {}


def test_what_cannot_be_made_is_told(tmp_path: Path, to: Broker) -> None:
    saved(tmp_path, {"orders-0": 4})
    done = migrate(tmp_path, to, "--replication-factor", "3")
    assert done.code == 1
    assert "topic 'orders' cannot be made: INVALID_REPLICATION_FACTOR" in done.stderr


def test_damage_is_told_and_the_rest_is_copied(tmp_path: Path, to: Broker) -> None:
    log = saved(tmp_path, {"orders-0": 11})["orders-0"]
    plain = [number for number, (_, data) in enumerate(log.batches) if data[16] == 2 and not data[22] & 0x30]
    offset, data = log.batches[plain[-1]]
    for path in sorted((tmp_path / "orders-0").iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole.replace(data, data[:-1] + bytes([data[-1] ^ 1])))
    done = migrate(tmp_path, to)
    behind = min([start for start, _ in log.batches if start > offset], default=log.end)
    lost = [record for record in log.visible() if offset <= record.offset < behind]
    assert (done.code, "kohort: damaged: " in done.stderr) == (1, True)
    assert read_all(to) == copied([record for record in log.visible() if record not in lost])


def test_hostile_names_are_shown_inert_and_copied_as_they_are(to: Broker) -> None:
    with Broker() as source:
        source.create_topic(TOPIC)
        produce(source, 5)
        for name in HOSTILE:
            commit_as_is(source, name, 3)
        done = migrate(live(source), to)
        shown = migrate(live(source), to, "--format", "json")
    assert (done.code, shown.code) == (0, 0), done
    told = done.stdout + done.stderr + shown.stdout
    assert not [character for character in told if not character.isprintable() and character != "\n"]
    for name in HOSTILE:
        assert offsets_of(to, name) == {(TOPIC, 0): (3, "")}


@pytest.mark.parametrize(
    ("source", "to", "told"),
    [
        ("{logs}", "127.0.0.1:1", "127.0.0.1:1: cannot connect; expected HOST:PORT of a running broker"),
        ("{logs}", "nonsense:x", "nonsense:x: is not HOST:PORT"),
        ("kafka://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:1: cannot connect; expected HOST:PORT of a running broker"),
        ("kafka://", "127.0.0.1:1", ": is not HOST:PORT"),
        ("gone", "127.0.0.1:1", "gone: No such file or directory; expected a Kafka log directory or kafka://HOST:PORT"),
        (f"gone{ESCAPE}[31m", "127.0.0.1:1", "gone\\x1b[31m: No such file or directory"),
    ],
)
def test_a_wrong_place_is_told_in_one_line(tmp_path: Path, source: str, to: str, told: str) -> None:
    saved(tmp_path / "logs", {"orders-0": 4})
    done = run_main("migrate", source.replace("{logs}", str(tmp_path / "logs")), "--to", to, "--timeout", "1000")
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert done.stderr.startswith(f"kohort: {told}")


LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{0}-secret"'
GUARDED = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
}


def test_each_side_has_a_login_of_its_own(tmp_path: Path) -> None:
    configs = {}
    for who in ("source", "to"):
        configs[who] = tmp_path / f"{who}.properties"
        login = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN.format(who)};\n"
        configs[who].write_text(login)
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    settings = {who: GUARDED | {name: f'{LOGIN.format(who)} user_{who}="{who}-secret";'} for who in configs}
    with Broker(settings=settings["source"]) as source, Broker(settings=settings["to"]) as to:
        source.create_topic(TOPIC)
        produce(source, 5)
        address = f"kafka://{source.listeners['SASL_PLAINTEXT']}"
        right = ("--command-config", configs["source"], "--to-config", configs["to"])
        wrong = ("--command-config", configs["source"], "--to-config", configs["source"])
        where = ("migrate", address, "--to", to.listeners["SASL_PLAINTEXT"])
        refused_login = run_main(*where, *wrong)
        assert (refused_login.code, refused_login.stderr.count("\n")) == (1, 1), refused_login
        assert "secret" not in refused_login.stderr
        done = run_main(*where, *right)
        assert done.code == 0, done
        assert read_all(to) == read_all(source)


def test_a_config_for_a_live_source_does_not_go_with_a_directory(tmp_path: Path) -> None:
    done = run_main("migrate", tmp_path, "--to", "127.0.0.1:1", "--command-config", tmp_path / "none")
    assert done.code == 2
    assert "--command-config is for a live SOURCE" in done.stderr


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    saved(tmp_path / "logs", {"orders-0": 4})
    report = tmp_path / "report.json"
    with ctrl_c_as_usual(), silent_broker(interrupt_this_process) as address:
        done = run_main("migrate", tmp_path / "logs", "--to", address, "--report", report)
    assert (done.code, done.stderr, done.stdout) == (130, "kohort: interrupted\n", "")
    assert not report.exists()
