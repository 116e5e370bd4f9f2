"""`kohort demo`: the life of a few groups, written by the real log, then dumped and replayed by the real commands."""

import os
import sys
import tempfile
from collections.abc import Sequence

import click

from kohort.cli.dump import dump
from kohort.cli.state import state
from kohort.clock import SystemClock, VirtualClock
from kohort.config import LogConfig
from kohort.log.directory import LogDirectory
from kohort.log.files import RealFiles
from kohort.log.names import TopicPartition
from kohort.log.partition import AppendOrigin, Log
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

_PRODUCER = 4000
_STORY_MS = 121 * 60_000


@click.command()
def demo() -> None:
    """A log made, dumped and replayed before your eyes."""
    path = tempfile.mkdtemp(prefix="kohort-demo-")
    clock = VirtualClock(SystemClock().now_ms() - _STORY_MS)
    directory = LogDirectory(RealFiles(), path, clock, lambda _: LogConfig(cleanup_policy=frozenset({"compact"})))
    story = _Story(directory.create_log(TopicPartition("__consumer_offsets", 0)), clock)
    story.tell()
    directory.close()

    _say(f"Made a log as Kafka would lay it out, in {path}. Every record in it:")
    dump.main([path], standalone_mode=False)
    _say("What a broker knows after loading it: the aborted commit is not there, the open one waits.")
    state.main([path], standalone_mode=False)
    _say("And half an hour after the beginning, before the second member came:")
    state.main([path, "--as-of", str(story.started_ms + 30 * 60_000)], standalone_mode=False)
    _say("Go on with it:")
    kohort = min(sys.argv[0], os.path.relpath(sys.argv[0]), key=len)
    click.echo(f"  {kohort} dump {path} --format jsonl --group shop")
    click.echo(f"  {kohort} state {path} --format json")
    click.echo(f"  {kohort} state /var/lib/kafka/data   # the offsets of a broker of your own")


def _say(sentence: str) -> None:
    click.echo(f"\n{click.style(sentence, bold=True)}\n")


class _Story:
    """Two hours of three groups."""

    def __init__(self, log: Log, clock: VirtualClock) -> None:
        self._log = log
        self._clock = clock
        self.started_ms = clock.now_ms()

    def tell(self) -> None:
        self._generation("shop", 1, ["till-1"])
        self._commit("shop", {0: 120, 1: 80})
        self._minutes(40)
        self._generation("shop", 2, ["till-1", "till-2"])
        self._commit("shop", {0: 260})
        self._commit("shop", {1: 175}, metadata="from till-2")
        self._minutes(20)
        self._commit("billing", {0: 50}, in_transaction=True)
        self._end(ControlType.COMMIT)
        self._commit("billing", {0: 99}, in_transaction=True)
        self._end(ControlType.ABORT)
        self._commit("old-report", {0: 7})
        self._minutes(60)
        self._append([(encode_key(OffsetKey("old-report", "orders", 0)), None)], base_sequence=-1)
        self._generation("shop", 3, [])
        self._commit("billing", {0: 140}, in_transaction=True)

    def _minutes(self, minutes: int) -> None:
        self._clock.advance(minutes * 60_000)

    def _generation(self, group: str, generation: int, clients: Sequence[str]) -> None:
        members = tuple(
            MemberValue(
                member_id=f"{client}-7d0b",
                client_id=client,
                client_host="/127.0.0.1",
                session_timeout=10_000,
                rebalance_timeout=300_000,
                subscription=encode_subscription(Subscription(("orders",), version=1)),
                assignment=encode_assignment(Assignment((TopicPartitions("orders", (number,)),))),
            )
            for number, client in enumerate(clients)
        )
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=generation,
            protocol="range" if members else None,
            leader=members[0].member_id if members else None,
            members=members,
            current_state_timestamp=self._clock.now_ms(),
        )
        self._append([(encode_key(GroupKey(group)), encode_value(value))], base_sequence=-1)

    def _commit(self, group: str, offsets: dict[int, int], *, metadata: str = "", in_transaction: bool = False) -> None:
        now_ms = self._clock.now_ms()
        self._append(
            [
                (
                    encode_key(OffsetKey(group, "orders", partition)),
                    encode_value(OffsetCommitValue(offset, metadata, now_ms)),
                )
                for partition, offset in offsets.items()
            ],
            in_transaction=in_transaction,
        )

    def _append(
        self,
        entries: Sequence[tuple[bytes, bytes | None]],
        *,
        base_sequence: int = 0,
        in_transaction: bool = False,
    ) -> None:
        now_ms = self._clock.now_ms()
        batch = RecordBatch.build(
            [Record(number, now_ms, key, value) for number, (key, value) in enumerate(entries)],
            transactional=in_transaction,
            producer_id=_PRODUCER if in_transaction else -1,
            producer_epoch=0 if in_transaction else -1,
            base_sequence=base_sequence,
        )
        self._log.append(batch.encode(), origin=AppendOrigin.COORDINATOR)
        self._clock.advance(1)

    def _end(self, control_type: ControlType) -> None:
        marker = marker_batch(
            Marker(control_type, 0), producer_id=_PRODUCER, producer_epoch=0, timestamp=self._clock.now_ms()
        )
        self._log.append(marker.encode(), origin=AppendOrigin.COORDINATOR)
        self._clock.advance(1)
