"""Logs of one partition as brokers leave them, made by chance: transactions, holes, old formats, deleted beginnings.

What a reader of committed data sees is written down while the log is made, not read out of it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from kohort.log.names import LOG, offset_file
from kohort.records.batch import Header, Record, RecordBatch
from kohort.records.compression import Codec
from kohort.records.control import ControlType, Marker, marker_batch
from tests.records.legacy import message, wrapper

NOW_MS = 1_700_000_000_000


@dataclass
class Written:
    """A record, and the transaction that it is in: a number, or None."""

    record: Record
    transaction: int | None


@dataclass
class RandomLog:
    """The batches of a partition, and what is in them."""

    seed: int
    batches: list[tuple[int, bytes]] = field(default_factory=list)
    """Each with the offset at which it begins."""
    written: list[Written] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    open: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Producers with an open transaction: its number and its first offset."""
    next_offset: int = 0
    end: int = 0
    """The offset behind the last batch; what comes next may leave some out."""

    @property
    def start(self) -> int:
        return self.batches[0][0]

    @property
    def stable_end(self) -> int:
        return min((first for _, first in self.open.values()), default=self.end)

    def visible(self, start: int = 0) -> list[Record]:
        """In their order, under their offsets in the source."""
        return [
            one.record
            for one in self.written
            if (one.transaction is None or one.transaction in self.committed)
            and start <= one.record.offset < self.stable_end
        ]

    def aborted(self) -> int:
        hidden = (one for one in self.written if one.transaction is not None and one.transaction not in self.committed)
        return sum(one.record.offset < self.stable_end for one in hidden)

    def save(self, directory: Path, segments: int = 3) -> None:
        """Segments as a broker would name them."""
        directory.mkdir(parents=True)
        chance = random.Random(self.seed)
        starts = sorted(chance.sample(range(1, len(self.batches)), min(segments, len(self.batches)) - 1))
        for start, end in pairwise([0, *starts, len(self.batches)]):
            base = self.batches[start][0]
            data = b"".join(data for _, data in self.batches[start:end])
            (directory / offset_file(base, LOG)).write_bytes(data)


def random_log(seed: int, steps: int = 60) -> RandomLog:
    chance = random.Random(seed)
    log = RandomLog(seed, next_offset=chance.choice([0, 0, 1, 5_000]))
    transactions = 0
    for _ in range(steps):
        step = chance.random()
        if step < 0.1 and log.open:
            _end(log, chance)
        elif step < 0.2:
            log.next_offset += chance.randint(1, 30)
        elif step < 0.35:
            _write_old(log, chance)
        elif step < 0.6:
            producer = chance.randint(1, 3)
            if producer not in log.open:
                transactions += 1
            transaction = log.open.get(producer, (transactions, log.next_offset))[0]
            _write(log, chance, producer, transaction)
        else:
            _write(log, chance, None, None)
    while log.open and chance.random() < 0.8:
        _end(log, chance)
    return log


def _end(log: RandomLog, chance: random.Random) -> None:
    producer = chance.choice(sorted(log.open))
    transaction, _ = log.open.pop(producer)
    is_committed = chance.random() < 0.6
    if is_committed:
        log.committed.add(transaction)
    marker = Marker(ControlType.COMMIT if is_committed else ControlType.ABORT, 0)
    batch = marker_batch(marker, producer_id=producer, producer_epoch=0, timestamp=NOW_MS)
    data = bytearray(batch.encode())
    data[:8] = log.next_offset.to_bytes(8, "big")
    log.batches.append((log.next_offset, bytes(data)))
    log.end = log.next_offset = log.next_offset + 1


def _write(log: RandomLog, chance: random.Random, producer: int | None, transaction: int | None) -> None:
    """A batch of the format of today; the cleaner may have been at it, and the broker's clock may count."""
    count = chance.choice([1, 2, 5, 40])
    kept = [number for number in range(count) if chance.random() < chance.choice([1.0, 1.0, 0.5])]
    is_append_time = chance.random() < 0.1
    horizon = NOW_MS + 5 if chance.random() < 0.1 else None
    records = [Record(log.next_offset + number, NOW_MS + chance.randint(-50, 50), *_content(chance)) for number in kept]
    batch = RecordBatch.build(
        records,
        codec=chance.choice(list(Codec)),
        transactional=transaction is not None,
        log_append_time=is_append_time,
        delete_horizon=horizon,
        base_offset=log.next_offset,
        last_offset_delta=count - 1,
        max_timestamp=NOW_MS + 77 if is_append_time else None,
        producer_id=-1 if producer is None else producer,
        producer_epoch=-1 if producer is None else 0,
    )
    if transaction is not None and producer is not None and records:
        log.open.setdefault(producer, (transaction, log.next_offset))
    log.batches.append((log.next_offset, batch.encode()))
    for record in records:
        told = record._replace(timestamp=NOW_MS + 77) if is_append_time else record
        log.written.append(Written(told, transaction))
    log.end = log.next_offset = log.next_offset + count


def _write_old(log: RandomLog, chance: random.Random) -> None:
    """Messages of formats 0 and 1, alone or wrapped."""
    magic = chance.choice([0, 1])
    pairs = [_content(chance)[:2] for _ in range(chance.choice([1, 3]))]
    times = [NOW_MS + number if magic else -1 for number in range(len(pairs))]
    offset = log.next_offset
    if chance.random() < 0.5:
        codec = chance.choice([Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
        log.batches.append((offset, wrapper(pairs, offset, codec, magic=magic, timestamp=NOW_MS)))
    else:
        for number, (key, value) in enumerate(pairs):
            raw = message(offset + number, key, value, magic=magic, timestamp=NOW_MS + number)
            log.batches.append((offset + number, raw))
    for number, ((key, value), time) in enumerate(zip(pairs, times, strict=True)):
        log.written.append(Written(Record(offset + number, time, key, value), None))
    log.end = log.next_offset = log.next_offset + len(pairs)


def _content(chance: random.Random) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    def some(most: int) -> Iterator[int]:
        return (chance.randrange(256) for _ in range(chance.randint(0, most)))

    key = bytes(some(8)) if chance.random() < 0.8 else None
    value = bytes(some(60)) * chance.choice([1, 1, 50]) if chance.random() < 0.9 else None
    headers = tuple(
        Header(f"h{number}", chance.choice([None, b"", b"x"])) for number in range(chance.choice([0, 0, 2]))
    )
    return key, value, headers
