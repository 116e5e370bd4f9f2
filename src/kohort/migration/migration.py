"""From one cluster, dead or alive, into another: what is done in which order.

Groups are read first, so that no offset is newer than its records. Settings that let records go come last, when all has
been read back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kohort.admin.cluster import Cluster
from kohort.admin.offsets import Offsets
from kohort.admin.refusals import named
from kohort.errors import KohortError
from kohort.log.cluster import TopicPartition
from kohort.log.source import OnDamage, OnProgress
from kohort.migration.destination import Destination
from kohort.migration.groups import set_offsets, translated
from kohort.migration.offset_map import OffsetMap
from kohort.migration.partition_copy import PartitionCopy
from kohort.migration.reading import Refused
from kohort.migration.report import PartitionReport, Report, TopicReport
from kohort.migration.source import NEVER_COPIED, Source, SourceTopic


class NothingLikeIt(KohortError):
    """A topic or a group that was asked for and is not in the source."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done; no names mean all."""

    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    replication_factor: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Hearer:
    """Who hears how it goes."""

    on_damage: OnDamage
    on_progress: OnProgress


def migrate(source: Source, source_name: str, cluster: Cluster, wanted: Wanted, hearer: Hearer) -> Report:
    """Copy what is wanted, and tell."""
    topics = _chosen_topics(source, wanted.topics)
    groups = _chosen_groups(source, wanted.groups, hearer)
    destination = Destination(cluster, wanted.replication_factor)
    report = Report(source_name, cluster.bootstrap, wanted.dry_run, [], [], [])
    copies: dict[TopicPartition, OffsetMap] = {}
    for topic in topics:
        told = destination.look_at(topic)
        report.topics.append(told)
        if told.problem is None and not wanted.dry_run:
            destination.make(topic, told)
        copies |= _copy_topic(source, topic, cluster, told, report.partitions, hearer, execute=not wanted.dry_run)
    report.groups = translated(groups, copies)
    if not wanted.dry_run:
        set_offsets(cluster, groups, report.groups)
        for topic, told in zip(topics, report.topics, strict=True):
            if told.problem is None and _is_copied(topic, report.partitions):
                destination.hand_over(topic, told)
    return report


def _copy_topic(
    source: Source,
    topic: SourceTopic,
    cluster: Cluster,
    told: TopicReport,
    reports: list[PartitionReport],
    hearer: Hearer,
    *,
    execute: bool,
) -> Mapping[TopicPartition, OffsetMap]:
    """The partitions that have a copy now, each with where its records are in it."""
    copies: dict[TopicPartition, OffsetMap] = {}
    exists = bool(cluster.partitions_of(topic.name))
    for number in topic.partitions:
        report = PartitionReport(topic.name, number)
        reports.append(report)
        if told.problem is not None:
            report.problem = "its topic cannot be copied"
            continue
        try:
            copy = PartitionCopy(cluster, source.partition(topic.name, number), report, hearer.on_damage)
            copy.run(exists=exists, execute=execute, on_progress=hearer.on_progress)
        except Refused as refused:
            report.problem = str(refused)
            report.verified = False if execute else None
        else:
            copies[topic.name, number] = copy.offsets
    return copies


def _is_copied(topic: SourceTopic, reports: Sequence[PartitionReport]) -> bool:
    return all(report.verified for report in reports if report.topic == topic.name)


def _chosen_topics(source: Source, names: Sequence[str]) -> list[SourceTopic]:
    topics = source.topics()
    for name in names:
        if name in NEVER_COPIED:
            raise NothingLikeIt(f"topic {named(name)} is the cluster's own: its records mean nothing in another")
        if name not in topics:
            raise NothingLikeIt(f"the source has no topic {named(name)}")
    return [topic for name, topic in sorted(topics.items()) if not names or name in names]


def _chosen_groups(source: Source, names: Sequence[str], hearer: Hearer) -> dict[str, Offsets]:
    groups = source.groups(hearer.on_damage)
    for name in names:
        if name not in groups:
            raise NothingLikeIt(f"the source has no offsets of group {named(name)}")
    return {name: offsets for name, offsets in groups.items() if offsets and (not names or name in names)}
