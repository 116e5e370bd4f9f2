"""Appends on their way to the database: together, once, and only for the owner."""

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kohort.clock import VirtualClock
from kohort.config import LogConfig
from kohort.errors import StorageFailed
from kohort.log.cleaner import Cleaner
from kohort.log.names import TopicPartition
from kohort.log.partition import Log
from kohort.records.batch import read_batches
from kohort.store.copying import CopyFiles
from kohort.store.directory import StoreDirectory
from kohort.store.store import Store
from tests.log.log_bench import batch
from tests.store.everywhere import owned
from tests.store.shared_server import new_database

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 3)


@pytest.fixture
def url() -> str:
    return new_database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = owned(url)
    yield store
    store.close()


def opened(store: Store, config: LogConfig | None = None) -> StoreDirectory:
    return store.open_directory(VirtualClock(), lambda _: config or LogConfig())


def made(directory: StoreDirectory, *partitions: TopicPartition) -> list[Log]:
    return [directory.create_log(partition) for partition in partitions]


def values(log: Log) -> list[str]:
    found, offset = list[str](), log.log_start_offset
    while offset < log.high_watermark:
        fetched = log.read(offset, 1 << 20)
        found += [(record.value or b"").decode() for one in read_batches(fetched.records) for record in one.records]
        offset = fetched.next_offset
    return found


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


class TestWhatIsAppended:
    def test_is_seen_by_readers_when_the_database_has_it_and_not_before(self, store: Store) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a", "b"))
        log.roll()  # a sync of the copy makes nothing safe
        assert (log.high_watermark, log.log_end_offset) == (0, 2)
        directory.keeper.flush()
        assert log.high_watermark == 2

    def test_is_there_for_the_next_owner(self, store: Store, url: str) -> None:
        directory = opened(store)
        first, second = made(directory, ORDERS, BILLS)
        first.append(batch("a", "b"))
        second.append(batch("x"))
        directory.keeper.flush()
        first.append(batch("c"))
        directory.keeper.flush()
        first.append(batch("never flushed"))
        store.close()
        heir = owned(url)
        inherited = opened(heir).logs
        assert {where: values(log) for where, log in inherited.items()} == {ORDERS: ["a", "b", "c"], BILLS: ["x"]}
        assert [log.high_watermark for log in inherited.values()] == [1, 3]
        heir.close()

    def test_of_several_logs_goes_in_one_transaction(self, store: Store, url: str) -> None:
        directory = opened(store)
        logs = made(directory, *(TopicPartition("orders", number) for number in range(20)))
        for log in logs:
            log.append(batch("a"))
            log.append(batch("b", "c"))
        directory.keeper.flush()
        assert rows(url, "SELECT count(*), count(DISTINCT xmin::text) FROM kohort.batches") == [(40, 1)]
        assert rows(url, "SELECT DISTINCT end_offset FROM kohort.partitions") == [(3,)]

    def test_keeps_what_transactions_have_left_open(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a", producer=7, epoch=0, sequence=0, transactional=True))
        directory.keeper.flush()
        store.close()
        heir = owned(url)
        log = opened(heir).logs[ORDERS]
        assert (log.last_stable_offset, log.high_watermark) == (0, 1)
        heir.close()

    def test_is_continued_in_a_higher_epoch(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a"))
        directory.keeper.flush()
        store.close()
        heir = owned(url)
        inherited = opened(heir).logs[ORDERS]
        assert [(one.epoch, one.start_offset) for one in inherited.leader_epochs.entries] == [(0, 0), (1, 1)]
        heir.close()


class TestTwoWhoThinkThatTheyOwnIt:
    def test_the_one_whose_time_was_over_writes_nothing_any_more(self, url: str) -> None:
        first = Store(url, broker_id=1, lease_ms=1_000)
        assert first.wait_until_free(lambda _: None)
        directory = opened(first)
        (log,) = made(directory, ORDERS)
        log.append(batch("a"))
        directory.keeper.flush()

        holders = []
        second = Store(url, broker_id=2, lease_ms=60_000)
        assert second.wait_until_free(holders.append)  # whose lease nobody renews
        assert [holder.broker_id for holder in holders] == [1]

        log.append(batch("too late"))
        with pytest.raises(StorageFailed, match="taken over by broker 2"):
            directory.keeper.flush()
        assert log.high_watermark == 1
        with pytest.raises(StorageFailed, match="taken over by broker 2"):
            first.documents.write("topics.json", b"{}")
        with pytest.raises(StorageFailed, match="taken over by broker 2"):
            directory.delete_logs([ORDERS])
        assert values(opened(second).logs[ORDERS]) == ["a"]
        first.close()
        assert rows(url, "SELECT broker_id FROM kohort.store WHERE owner IS NOT NULL") == [(2,)]
        second.close()

    def test_of_many_who_wait_one_gets_it(self, url: str) -> None:
        stores = [Store(url, broker_id=number, lease_ms=60_000) for number in range(6)]
        owners: list[int] = []
        is_owned = threading.Event()

        def wait(number: int) -> None:
            if stores[number].wait_until_free(lambda _: None):
                owners.append(number)
                is_owned.set()

        waiting = [threading.Thread(target=wait, args=(number,)) for number in range(6)]
        for thread in waiting:
            thread.start()
        assert is_owned.wait(30)
        for store in stores:
            store.stop_waiting()
        for thread in waiting:
            thread.join()
        assert len(owners) == 1
        for store in stores:
            store.close()


class TestABreak:
    def test_an_append_whose_answer_was_lost_is_not_made_twice(
        self, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = opened(store)
        first, second = made(directory, ORDERS, BILLS)
        first.append(batch("a"))
        lost: list[bool] = []
        execute = psycopg.Connection.execute

        def losing(connection: psycopg.Connection, query: object, *given: object, **kinds: object) -> object:
            answer = execute(connection, query, *given, **kinds)  # type: ignore[arg-type] # whatever came
            if "INSERT INTO kohort.batches" in str(query) and not lost:
                lost.append(True)
                connection.close()
                raise psycopg.OperationalError("the connection was lost")
            return answer

        monkeypatch.setattr(psycopg.Connection, "execute", losing)
        directory.keeper.flush()
        assert lost
        second.append(batch("b"))
        first.append(batch("c"))
        directory.keeper.flush()
        assert rows(url, "SELECT base_offset, next_offset FROM kohort.batches ORDER BY 1") == [(0, 1), (0, 1), (1, 2)]

    def test_a_database_that_was_set_back_is_told_from_one_that_was_taken_over(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        for text in "abc":
            log.append(batch(text))
            directory.keeper.flush()
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE kohort.partitions SET end_offset = 1")
            connection.execute("DELETE FROM kohort.batches WHERE base_offset >= 1")
        log.append(batch("d"))
        with pytest.raises(StorageFailed, match="set back to an earlier state: orders-0 ended at offset 3"):
            directory.keeper.flush()
        assert log.high_watermark == 3


class TestWhatGoes:
    def test_a_log_that_begins_later_does_so_for_the_next_owner(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        for text in "abcd":
            log.append(batch(text))
        directory.keeper.flush()
        log.delete_records_before(2)
        directory.checkpoint()
        assert rows(url, "SELECT base_offset FROM kohort.batches ORDER BY 1") == [(2,), (3,)]
        store.close()
        heir = owned(url)
        log = opened(heir).logs[ORDERS]
        assert (log.log_start_offset, log.log_end_offset, values(log)) == (2, 4, ["c", "d"])
        heir.close()

    def test_a_log_that_is_empty_goes_on_where_it_ended(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a", "b"))
        directory.keeper.flush()
        log.delete_records_before(2)
        directory.checkpoint()
        store.close()
        heir = owned(url)
        directory = opened(heir)
        log = directory.logs[ORDERS]
        assert (log.log_start_offset, log.log_end_offset) == (2, 2)
        assert log.append(batch("c")).first_offset == 2
        directory.keeper.flush()
        heir.close()
        third = owned(url)
        assert values(opened(third).logs[ORDERS]) == ["c"]
        third.close()

    def test_a_log_that_begins_within_a_batch_is_whole_from_there_on(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a", "b", "c"))
        directory.keeper.flush()
        log.delete_records_before(1)
        directory.checkpoint()
        store.close()
        heir = owned(url)
        log = opened(heir).logs[ORDERS]
        assert (log.log_start_offset, log.log_end_offset) == (1, 3)
        heir.close()

    def test_a_log_that_was_cleaned_is_so_for_the_next_owner(self, store: Store, url: str) -> None:
        config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300)
        directory = opened(store, config)
        (log,) = made(directory, ORDERS)
        for number in range(20):
            log.append(batch(f"{number}", key=b"even" if number % 2 == 0 else b"odd"))
        directory.keeper.flush()
        files = CopyFiles()
        cleaning = Cleaner(files, directory.path, VirtualClock()).begin(log)
        for step in cleaning.steps():
            log.replace(step)
            log.keep_replaced(step)
        cleaned = values(log)
        assert 2 <= len(cleaned) < 10
        assert rows(url, "SELECT count(*) FROM kohort.batches") == [(len(cleaned),)]
        store.close()
        heir = owned(url)
        log = opened(heir, config).logs[ORDERS]
        assert (values(log), log.log_end_offset) == (cleaned, 20)
        heir.close()

    def test_a_deleted_log_leaves_nothing_and_its_name_is_free(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        log.append(batch("a"))
        directory.keeper.flush()
        log.append(batch("on the way"))
        directory.delete_logs([ORDERS])
        directory.keeper.flush()
        (again,) = made(directory, ORDERS)
        again.append(batch("new"))
        directory.keeper.flush()
        directory.remove_directories([])
        assert rows(url, "SELECT number, end_offset FROM kohort.partitions") == [(0, 1)]
        assert rows(url, "SELECT count(*) FROM kohort.batches") == [(1,)]

    def test_large_logs_are_copied_in_segments_that_follow_on_each_other(self, store: Store, url: str) -> None:
        directory = opened(store)
        (log,) = made(directory, ORDERS)
        for number in range(40):
            log.append(batch(*(f"{number}-{text}" * 20_000 for text in "ab")))
        directory.keeper.flush()
        before = values(log)
        store.close()
        heir = owned(url)
        log = opened(heir, LogConfig(segment_bytes=1_500_000)).logs[ORDERS]
        assert len(log.segments) > 2
        assert values(log) == before
        assert len(before) == 80
        heir.close()


def test_the_copy_is_gone_when_it_is_not_needed_any_more(store: Store) -> None:
    directory = opened(store)
    made(directory, ORDERS)
    path = Path(directory.path)
    assert path.is_dir()
    directory.close()
    assert not path.exists()
