"""A copy of what the database holds, in files that a log can be opened from.

Nothing here has to outlive the process or a power cut, so nothing is ever synced.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from psycopg import Connection

from kohort.config import LogConfig
from kohort.log.checkpoints import LOG_START_OFFSET, write_offsets
from kohort.log.directory import CLEAN_SHUTDOWN
from kohort.log.files import RealFile, RealFiles, join
from kohort.log.names import LOG, TopicPartition, offset_file
from kohort.log.scan import expect_much

_BLOCK_BYTES = 1 << 20


class StoredPartition(NamedTuple):
    """A partition as `partitions` has it."""

    id: int
    topic_partition: TopicPartition
    epoch: int
    start_offset: int
    end_offset: int


class _CopyFile(RealFile):
    def sync(self) -> None:
        """The original is elsewhere."""


class CopyFiles(RealFiles):
    """The operating system's files, which may be gone at any time."""

    file_type = _CopyFile

    def sync_dir(self, path: str) -> None:
        """Nor need anybody find the copy."""


def stored_partitions(connection: Connection) -> list[StoredPartition]:
    rows = connection.execute(
        "SELECT id, topic, number, epoch, start_offset, end_offset FROM kohort.partitions WHERE NOT is_doomed "
        "ORDER BY topic, number"
    )
    return [StoredPartition(row[0], TopicPartition(row[1], row[2]), *row[3:]) for row in rows]


def copy_all(
    connection: Connection, directory: str, partitions: list[StoredPartition], config_of: Callable[[str], LogConfig]
) -> None:
    """Put all of them into an empty directory, as a broker leaves it that ended well."""
    files, size = CopyFiles(), 0
    for partition in partitions:
        path = join(directory, str(partition.topic_partition))
        files.make_dir(path)
        size += _copy(connection, path, partition, config_of(partition.topic_partition.topic).segment_bytes)
    expect_much(size)
    starts = {partition.topic_partition: partition.start_offset for partition in partitions if partition.start_offset}
    write_offsets(files, join(directory, LOG_START_OFFSET), starts)
    files.open(join(directory, CLEAN_SHUTDOWN), create=True).close()


def _copy(connection: Connection, path: str, partition: StoredPartition, segment_bytes: int) -> int:
    """In segments of about the right size. The first begins where the log does, and the last ends there too. Returns
    how many bytes that were."""
    files, end, size = CopyFiles(), -1, 0
    with contextlib.ExitStack() as at_the_end:
        file: RealFile | None = None
        for base_offset, next_offset, block in _blocks(connection, partition):
            if file is None or file.size() >= segment_bytes:
                base = base_offset if file is not None else min(base_offset, partition.start_offset)
                file = files.open(_segment(path, base), create=True)
                at_the_end.callback(file.close)
            file.append(block)
            end, size = next_offset, size + len(block)
    if end < partition.end_offset:  # the cleaner, or retention, has left nothing up to there
        files.open(_segment(path, partition.end_offset), create=True).close()
    return size


def _blocks(connection: Connection, partition: StoredPartition) -> Iterator[tuple[int, int, bytes]]:
    """Batches that follow on each other, many together: where they begin and end, and their bytes."""
    base, parts, size, end = -1, list[bytes](), 0, partition.start_offset
    with connection.cursor() as cursor:
        query = (
            "COPY (SELECT base_offset, next_offset, data FROM kohort.batches "
            f"WHERE partition_id = {partition.id:d} AND next_offset > {partition.start_offset:d} "
            "ORDER BY base_offset) TO STDOUT (FORMAT BINARY)"
        )
        with cursor.copy(query.encode()) as copy:
            copy.set_types(["int8", "int8", "bytea"])
            for base_offset, next_offset, data in copy.rows():
                base = base_offset if not parts else base
                parts.append(data)
                size, end = size + len(data), next_offset
                if size >= _BLOCK_BYTES:
                    yield base, end, b"".join(parts)
                    parts, size = [], 0
    if parts:
        yield base, end, b"".join(parts)


def _segment(path: str, base_offset: int) -> str:
    return join(path, offset_file(base_offset, LOG))
