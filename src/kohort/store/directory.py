"""The logs of a store as a broker uses them: the database has them, and a directory of this machine has a copy.

All that changes a log there is done by its owner: appends by the keeper, the rest here. What takes long is done by the
housekeeping, in its own thread: deleted partitions are out of use at once, and their batches go later.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence

from psycopg import Connection

from kohort.clock import Clock
from kohort.config import LogConfig
from kohort.log.directory import LogDirectory
from kohort.log.names import TopicPartition
from kohort.log.partition import Log
from kohort.store.copying import CopyFiles, StoredPartition, copy_all, stored_partitions
from kohort.store.database import Database
from kohort.store.keeper import Row, StoreKeeper
from kohort.store.lease import Lease

_BATCHES_AT_A_TIME = 10_000


class StoreDirectory(LogDirectory):
    """Open for the one who has the lease."""

    def __init__(
        self,
        database: Database,
        keeper: StoreKeeper,
        lease: Lease,
        path: str,
        clock: Clock,
        config_of: Callable[[str], LogConfig],
    ) -> None:
        self._database = database
        self._store_keeper = keeper
        self._lease = lease
        self._starts: dict[Log, int] = {}

        def copy(connection: Connection) -> list[StoredPartition]:
            """Since the epochs were raised nobody else changes anything."""
            partitions = stored_partitions(connection)
            copy_all(connection, path, partitions, config_of)
            return partitions

        partitions = database.run(copy)
        super().__init__(CopyFiles(), path, clock, config_of, keeper=keeper)
        for partition in partitions:
            log = self._logs.get(partition.topic_partition)
            if log is not None:
                keeper.adopt(log, Row(partition.id, partition.epoch))
                log.lead(partition.epoch)

    def space(self) -> None:
        """The disk of the copy says nothing."""

    def make_log(self, topic_partition: TopicPartition, config: LogConfig) -> Log:
        log = super().make_log(topic_partition, config)

        def work(connection: Connection) -> int:
            row = connection.execute(
                "INSERT INTO kohort.partitions (topic, number) VALUES (%s, %s) RETURNING id", topic_partition
            ).fetchone()
            assert row is not None
            return int(row[0])

        self._store_keeper.adopt(log, Row(self._lease.own(self._database, work), 0))
        return log

    def delete_logs(self, topic_partitions: Sequence[TopicPartition]) -> None:
        self._doom(topic_partitions)
        self._store_keeper.drop([self._logs[where] for where in topic_partitions if where in self._logs])
        super().delete_logs(topic_partitions)

    def set_aside(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self._doom(list(topic_partitions))
        super().set_aside(topic_partitions)

    def _doom(self, topic_partitions: Sequence[TopicPartition]) -> None:
        def work(connection: Connection) -> None:
            connection.cursor().executemany(
                "UPDATE kohort.partitions SET is_doomed = true WHERE topic = %s AND number = %s AND NOT is_doomed",
                topic_partitions,
            )

        if topic_partitions:
            self._lease.own(self._database, work)

    def remove_directories(self, paths: Iterable[str]) -> None:
        super().remove_directories(paths)
        while self._lease.own(self._database, _remove_some):
            pass

    def checkpointing(self, *, removes_snapshots: bool = True) -> Callable[[], None]:
        write = super().checkpointing(removes_snapshots=removes_snapshots)
        starts = [(log, start) for log in self._logs.values() if (start := log.log_start_offset) != self._start(log)]

        def write_both() -> None:
            self._store_keeper.note_starts(starts)
            self._starts.update(starts)
            write()

        return write_both

    def _start(self, log: Log) -> int:
        return self._starts.get(log, 0)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_some(connection: Connection) -> int:
    """A little of what is doomed, so that nobody waits long. Returns how much that was."""
    batches = connection.execute(
        "DELETE FROM kohort.batches WHERE (partition_id, base_offset) IN (SELECT partition_id, base_offset "
        "FROM kohort.batches JOIN kohort.partitions ON id = partition_id WHERE is_doomed LIMIT %s)",
        (_BATCHES_AT_A_TIME,),
    ).rowcount
    if batches:
        return batches
    return connection.execute("DELETE FROM kohort.partitions WHERE is_doomed").rowcount
