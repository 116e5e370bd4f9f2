"""Where records come from: files that somebody left, or a cluster that runs. What reads them need not know which."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from kohort.errors import CorruptLog, KohortError
from kohort.records.batch import RecordBatch

if TYPE_CHECKING:
    from kohort.records.columns import Columns
    from kohort.records.key_table import KeyTable
    from kohort.records.replay import Piece, Rule

LIVE_SCHEME = "kafka://"

OnDamage = Callable[[CorruptLog], None]
OnProgress = Callable[[int], None]


class BadSource(KohortError):
    """What was given is no log that we can read."""


class Partition(Protocol):
    """One partition's records, from the first to the last."""

    @property
    def partition(self) -> int: ...

    @property
    def size(self) -> int:
        """In bytes; 0 if nobody knows."""

    def batches(self, on_damage: OnDamage, on_progress: OnProgress) -> Iterator[RecordBatch]:
        """Every sound batch, decoded by the scalar codec."""

    def columns(self, keys: "KeyTable", on_damage: OnDamage, on_progress: OnProgress) -> Iterator["Columns"]:
        """Every sound batch as columns; each is good until the next one is asked for."""


@contextlib.contextmanager
def open_source(source: str, topic: str) -> Iterator[Sequence[Partition]]:
    """The partitions of `topic` that `source` holds: a file, a directory, or kafka://HOST:PORT."""
    if source.startswith(LIVE_SCHEME):
        from kohort.log.cluster import LiveCluster
        from kohort.log.live import live_partitions

        with LiveCluster(source) as cluster:
            yield live_partitions(cluster, topic)
    else:
        from kohort.log.stored import find_partitions

        yield find_partitions(source, topic)


def replay_partition(
    source: Partition,
    rule: "Rule",
    on_damage: OnDamage,
    on_progress: OnProgress,
    as_of: int | None = None,
) -> "Piece":
    """What a partition's log says; with `as_of`, up to the first batch whose time is later."""
    from kohort.records.replay import Piece

    piece = Piece(rule)
    for columns in source.columns(piece.keys, on_damage, on_progress):
        kept, ended = (columns, False) if as_of is None else columns.until(as_of)
        piece.append(kept)
        if ended:
            break
    return piece
