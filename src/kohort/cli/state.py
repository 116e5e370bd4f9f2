"""`kohort state`: groups and offsets as a broker would hold them after loading the log."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from kohort.cli.damage import DamageReport
from kohort.cli.output import moment, one_line, progress, shortened, table, time_text
from kohort.cli.source import source_argument
from kohort.log.source import open_source, replay_partition
from kohort.records.finish import finish
from kohort.records.groups import Group, Member
from kohort.records.json_text import to_json
from kohort.records.offsets_topic import CoordinatorKey, Key, OffsetKey
from kohort.records.replay import Rule
from kohort.records.rows import assigned_partitions, subscribed_topics
from kohort.records.state import Committed, GroupTopicPartition, State


@click.command()
@source_argument
@click.option("--topic", default="__consumer_offsets", show_default=True, help="Which topic of a log directory.")
@click.option("--as-of", type=moment, help="The state at this time.")
@click.option(
    "--rule",
    type=click.Choice([rule.value for rule in Rule]),
    default=Rule.POSITION.value,
    show_default=True,
    help="What a broker answers while it runs (and 4.x loads), or what brokers up to 3.9 make of their log.",
)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def state(source: str, topic: str, as_of: int | None, rule: str, format_: str) -> None:
    """Groups and offsets as a broker would load them.

    SOURCE is a segment file, a partition directory, a Kafka log directory, or kafka://HOST:PORT of a live cluster.

    \b
    Examples:
      kohort state /var/lib/kafka/data
      kohort state /var/lib/kafka/data --as-of 2026-11-16T03:12 --format json
      kohort state kafka://localhost:9092 --rule kafka-2.6
    """
    damage = DamageReport()
    with (
        open_source(source, topic) as partitions,
        progress("replay", sum(partition.size for partition in partitions)) as advance,
    ):
        loaded = finish(replay_partition(partition, Rule(rule), damage, advance, as_of) for partition in partitions)
    if format_ == "json":
        click.echo(to_json(_json(loaded), indent=1))
    else:
        for line in _tables(loaded):
            click.echo(line)
    _tell_unreadable(loaded)
    damage.exit()


def _tell_unreadable(loaded: State) -> None:
    if loaded.unreadable_keys:
        click.echo(f"kohort: {loaded.unreadable_keys} records passed over: their keys cannot be read", err=True)
    for key, value in loaded.unreadable:
        what = ", ".join(shortened(f"{part!r}") for part in _identity(key))
        told = f"the last {key.kind} of {what} cannot be read and is left out: {one_line(value.reason)}"
        click.echo(f"kohort: {told}", err=True)


def _identity(key: Key) -> tuple[object, ...]:
    if isinstance(key, OffsetKey):
        return key.group, key.topic, key.partition
    return tuple(key.fields.values()) if isinstance(key, CoordinatorKey) else (getattr(key, "group", None),)


def _json(loaded: State) -> dict[str, Any]:
    return {
        "groups": {name: _group(group) for name, group in sorted(loaded.groups.items())},
        "offsets": [_offset(key, committed) for key, committed in sorted(loaded.offsets.items())],
        "pending": [
            _offset(key, committed) | {"producer_id": producer_id}
            for producer_id, offsets in sorted(loaded.pending.items())
            for key, committed in sorted(offsets.items())
        ],
        "removed_groups": sorted(loaded.removed_groups),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "type": group.type,
        "state": group.state,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "state_timestamp": group.state_timestamp,
        "members": [_member(group, member) for member in group.members],
    }


def _member(group: Group, member: Member) -> dict[str, Any]:
    described: dict[str, Any] = {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "instance_id": member.instance_id,
        "rebalance_timeout": member.rebalance_timeout,
        "session_timeout": member.session_timeout,
    }
    if member.subscription is None or member.assignment is None:
        return described | {"subscription": member.topics, "assignment": member.topic_ids, "member_epoch": member.epoch}
    return described | {
        "subscription": subscribed_topics(group.protocol_type, member.subscription),
        "assignment": assigned_partitions(group.protocol_type, member.assignment),
        "subscription_raw": member.subscription,
        "assignment_raw": member.assignment,
    }


def _offset(key: GroupTopicPartition, committed: Committed) -> dict[str, Any]:
    value = committed.value
    return {
        "group": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": value.commit_timestamp,
        "expire_timestamp": value.expire_timestamp,
    }


def _tables(loaded: State) -> Iterator[str]:
    offsets_of = Counter(key.group for key in loaded.offsets)
    yield from table(
        ["GROUP", "STATE", "GENERATION", "PROTOCOL", "MEMBERS", "OFFSETS"],
        [
            [
                name,
                group.state if group.type == "classic" else f"{group.state} ({group.type})",
                str(group.generation),
                group.protocol or "-",
                str(len(group.members)),
                str(offsets_of[name]),
            ]
            for name, group in sorted(loaded.groups.items())
        ],
    )
    yield ""
    yield from table(
        ["GROUP", "TOPIC", "PARTITION", "OFFSET", "COMMITTED (UTC)", "METADATA"],
        [_offset_cells(key, committed) for key, committed in sorted(loaded.offsets.items())],
    )
    pending = [
        (*_offset_cells(key, committed), str(producer_id))
        for producer_id, offsets in sorted(loaded.pending.items())
        for key, committed in sorted(offsets.items())
    ]
    if pending:
        yield ""
        yield "Waiting for the end of their transaction:"
        yield from table(["GROUP", "TOPIC", "PARTITION", "OFFSET", "COMMITTED (UTC)", "METADATA", "PRODUCER"], pending)
    if loaded.removed_groups:
        yield ""
        yield from table(["REMOVED GROUP"], [[name] for name in sorted(loaded.removed_groups)])


def _offset_cells(key: GroupTopicPartition, committed: Committed) -> tuple[str, ...]:
    value = committed.value
    return (
        key.group,
        key.topic,
        str(key.partition),
        str(value.offset),
        time_text(value.commit_timestamp),
        value.metadata or "-",
    )
