"""A log whose story is known: six hours of groups that do well, lag, stop, rebalance in a storm, and worse."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kohort.group.placement import partition_for
from kohort.records.batch import Record, RecordBatch
from kohort.records.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from kohort.records.control import ControlType, Marker, marker_batch
from kohort.records.offsets_topic import (
    GroupKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitValue,
    OffsetKey,
    encode_key,
    encode_value,
)

START = 1_772_323_200_000
"""2026-03-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
END = START + 6 * HOUR
PARTITIONS = 50
HOSTILE = '<img src=x onerror="window.pwned = 1"><b>bold</b><a href="javascript:window.pwned=2">&lt;</a>'
TURNED = "abc\u202exe.cba"
ANSI = "\x1b[31mred\x1b[0m"
FORMULA = "=HYPERLINK(1)"
LONG = "long-" + "x" * 32_000
CLOSING = "</script><script>window.pwned = 3</script>\u2028"


@dataclass
class Log:
    """Events of any order, written as partitions in the order of time."""

    events: list[tuple[int, int, str, list[tuple[bytes, bytes | None]], dict[str, int]]] = field(default_factory=list)

    def commit(
        self, group: str, time: int, topic: str, offsets: dict[int, int], metadata: str = "", **transaction: int
    ) -> None:
        records = [
            (encode_key(OffsetKey(group, topic, n)), encode_value(OffsetCommitValue(at, metadata, time)))
            for n, at in offsets.items()
        ]
        self.events.append((time, len(self.events), group, records, transaction))

    def end(self, group: str, time: int, producer_id: int, kind: ControlType) -> None:
        self.events.append((time, len(self.events), group, [], {"producer_id": producer_id, "marker": int(kind)}))

    def generation(self, group: str, time: int, number: int, members: Sequence[MemberValue]) -> None:
        value = GroupMetadataValue(
            "consumer", number, "range" if members else None, members[0].member_id if members else None,
            tuple(members), time,
        )  # fmt: skip
        self.events.append((time, len(self.events), group, [(encode_key(GroupKey(group)), encode_value(value))], {}))

    def remove(self, group: str, time: int, topic: str, partitions: Sequence[int]) -> None:
        records = [(encode_key(OffsetKey(group, topic, n)), None) for n in partitions]
        self.events.append((time, len(self.events), group, [*records, (encode_key(GroupKey(group)), None)], {}))

    def write(self, directory: Path) -> None:
        logs: dict[int, bytearray] = {}
        ends: dict[int, int] = {}
        for time, _, group, records, more in sorted(self.events, key=lambda event: event[:2]):
            place = partition_for(group, PARTITIONS)
            batch = _batch(ends.get(place, 0), time, records, more)
            logs.setdefault(place, bytearray()).extend(batch.encode())
            ends[place] = batch.header.next_offset
        for place, data in logs.items():
            path = directory / f"__consumer_offsets-{place}"
            path.mkdir(parents=True)
            (path / f"{0:020d}.log").write_bytes(data)


def _batch(offset: int, time: int, records: list[tuple[bytes, bytes | None]], more: dict[str, int]) -> RecordBatch:
    producer_id = more.get("producer_id", -1)
    epoch = 0 if producer_id >= 0 else -1
    if "marker" in more:
        marker = Marker(ControlType(more["marker"]), 1)
        control = marker_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=time)
        return RecordBatch.build(
            [control.records[0]._replace(offset=offset)],
            transactional=True, control=True, producer_id=producer_id, producer_epoch=0,
        )  # fmt: skip
    made = [Record(offset + n, time, key, value) for n, (key, value) in enumerate(records)]
    return RecordBatch.build(
        made, transactional=producer_id >= 0, producer_id=producer_id, producer_epoch=epoch, base_sequence=0
    )


def member(name: str, topic: str, partitions: Sequence[int], *, number: int = 0, static: bool = False) -> MemberValue:
    return MemberValue(
        member_id=f"{name}-{number:08x}",
        client_id=name,
        client_host="/10.0.0.7",
        session_timeout=45_000,
        rebalance_timeout=300_000,
        subscription=encode_subscription(Subscription((topic,), version=1)),
        assignment=encode_assignment(Assignment((TopicPartitions(topic, tuple(partitions)),))),
        group_instance_id=name if static else None,
    )


def produced(time: int) -> int:
    """The end of each partition of `orders` at a time: a message every five seconds."""
    return max((time - START) // (5 * SECOND) + 1, 0)


def write_orders(directory: Path) -> None:
    """The data topic `orders`, a segment for every ten minutes."""
    for partition in range(6):
        path = directory / f"orders-{partition}"
        path.mkdir(parents=True)
        for first in range(0, produced(END - 1), 120):
            last = min(first + 120, produced(END - 1))
            records = [Record(n, START + n * 5 * SECOND, None, b"x") for n in range(first, last)]
            (path / f"{first:020d}.log").write_bytes(RecordBatch.build(records).encode())


def tell(log: Log) -> None:
    """Everything that happened."""
    _checkout(log)
    _billing(log)
    for time in range(START, END, MINUTE):
        log.commit("slow-indexer", time, "orders", dict.fromkeys(range(6), produced(time) * 2 // 3))
        if time < START + 3 * HOUR:
            log.commit("stopped-mailer", time, "orders", dict.fromkeys(range(6), produced(time)))
        log.commit("rewinder", time, "events", {0: produced(time if time < START + 4 * HOUR else time - 2 * HOUR)})
        log.commit("events-reader", time, "events", {0: produced(time) + 5})
    log.generation("slow-indexer", START, 1, [member("indexer", "orders", range(6))])
    log.generation("stopped-mailer", START, 1, [member("mailer", "orders", range(6))])
    log.generation("static-cache", START, 1, [member("cache-a", "orders", range(6), static=True)])
    log.generation("static-cache", START + HOUR, 1, [member("cache-a", "orders", range(6), number=1, static=True)])
    for time in range(START, END, 2 * SECOND):
        log.commit("chatty", time, "orders", {0: 7})
    _ledger(log)
    log.generation("abandoned", START - 157 * HOUR, 3, [])
    log.commit("abandoned", START - 157 * HOUR, "orders", {0: 0, 1: 0}, "left behind")
    for time in range(START, START + HOUR, MINUTE):
        log.commit("deleted", time, "orders", {0: produced(time)})
    log.remove("deleted", START + 2 * HOUR, "orders", [0])
    for name in (HOSTILE, TURNED, ANSI, FORMULA, LONG, CLOSING):
        log.generation(name, START + HOUR, 1, [member(name[:200], name[:200], [0])])
        log.commit(name, START + HOUR, name[:200], {0: 10}, metadata=name[:2000])
        log.commit(name, START + 2 * HOUR, name[:200], {0: 3}, metadata=name[:2000])


def _checkout(log: Log) -> None:
    three = [member(f"checkout-{n}", "orders", [2 * n, 2 * n + 1]) for n in range(3)]
    two = [member("checkout-0", "orders", [0, 1, 2]), member("checkout-1", "orders", [3, 4, 5])]
    log.generation("checkout", START, 1, three)
    log.generation("checkout", START + 2 * HOUR, 2, two)
    log.generation("checkout", START + 3 * HOUR, 3, three)
    for time in range(START, END, MINUTE // 2):
        log.commit("checkout", time, "orders", dict.fromkeys(range(6), produced(time)))


def _billing(log: Log) -> None:
    steady = [member(f"worker-{n}", "orders", [n]) for n in range(1, 4)]
    log.generation("billing", START, 1, [*steady, member("worker-7", "orders", [0, 4, 5])])
    step = 90 * MINUTE // 211
    for number in range(212):
        time = START + 130 * MINUTE + number * step
        lone = [member("worker-7", "orders", [0, 4, 5], number=number)] if number % 2 else []
        log.generation("billing", time, 2 + number, [*steady, *lone])
    for time in range(START, END, MINUTE):
        log.commit("billing", time, "orders", dict.fromkeys(range(6), produced(time)))


def _ledger(log: Log) -> None:
    for number, time in enumerate(range(START, END - HOUR, 10 * MINUTE)):
        log.commit("ledger", time, "orders", {0: produced(time)}, producer_id=9)
        log.end("ledger", time + SECOND, 9, ControlType.ABORT if number % 5 == 0 else ControlType.COMMIT)
    log.commit("ledger", END - HOUR, "orders", {0: produced(END - HOUR), 1: 5}, producer_id=9)


def damage(directory: Path) -> None:
    """One batch of `events-reader` gets a bit that the disk has turned."""
    path = directory / f"__consumer_offsets-{partition_for('events-reader', PARTITIONS)}" / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)


def write_story(directory: Path) -> Path:
    log = Log()
    tell(log)
    log.write(directory)
    write_orders(directory)
    damage(directory)
    return directory
