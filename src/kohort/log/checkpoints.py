"""Kafka's checkpoint files: a version, a count, and one line for each entry, replaced as a whole.

The broker's own (`recovery-point-offset-checkpoint` and its siblings) hold an offset for each partition. A partition's
`leader-epoch-checkpoint` holds the offset at which each epoch of leadership began.
"""

from collections.abc import Iterable, Mapping

from kohort.errors import CorruptLog
from kohort.log.files import Files, read_whole, write_whole
from kohort.log.names import TopicPartition, is_topic_name

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER_OFFSET = "cleaner-offset-checkpoint"

_VERSION = "0"


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    _write(files, path, (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())))


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """What the file says; nothing if there is none."""
    offsets = {}
    for line in _read(files, path):
        match line.split(" "):
            case [topic, partition, offset] if is_topic_name(topic) and partition.isdigit() and offset.isdigit():
                offsets[TopicPartition(topic, int(partition))] = int(offset)
            case _:
                raise CorruptLog(f"not a partition and an offset: {line!r}", path=path)
    return offsets


def write_leader_epochs(files: Files, path: str, epochs: Iterable[tuple[int, int]]) -> None:
    _write(files, path, (f"{epoch} {start_offset}" for epoch, start_offset in epochs))


def read_leader_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """Pairs of an epoch and its start offset; nothing if there is no file."""
    epochs = []
    for line in _read(files, path):
        match line.split(" "):
            case [epoch, start_offset] if epoch.isdigit() and start_offset.isdigit():
                epochs.append((int(epoch), int(start_offset)))
            case _:
                raise CorruptLog(f"not an epoch and an offset: {line!r}", path=path)
    return epochs


def _write(files: Files, path: str, entries: Iterable[str]) -> None:
    entries = list(entries)
    write_whole(files, path, "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode())


def _read(files: Files, path: str) -> list[str]:
    if not files.exists(path):
        return []
    try:
        version, count, *entries = read_whole(files, path).decode("ascii").splitlines()
    except ValueError:
        raise CorruptLog("no version and count", path=path) from None
    if version != _VERSION:
        raise CorruptLog(f"unknown version {version!r}", path=path)
    if count != str(len(entries)):
        raise CorruptLog(f"{count!r} entries claimed, {len(entries)} there", path=path)
    return entries
