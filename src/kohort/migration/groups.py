"""The offsets of groups, as offsets of the copies, set in the destination and read back."""

from collections.abc import Mapping

from kohort.admin.cluster import Cluster
from kohort.admin.groups import describe_groups
from kohort.admin.offsets import Offset, Offsets, commit, committed_offsets
from kohort.log.cluster import TopicPartition
from kohort.migration.offset_map import OffsetMap
from kohort.migration.report import GroupOffset, GroupReport

_NOT_COPIED = "its partition is not copied"


def translated(groups: Mapping[str, Offsets], copies: Mapping[TopicPartition, OffsetMap]) -> list[GroupReport]:
    """What each group is to get; nothing is said of partitions that have no copy."""
    return [
        GroupReport(
            name,
            [
                GroupOffset(*key, offset.offset, copies[key].translate(offset.offset))
                if key in copies
                else GroupOffset(*key, offset.offset, None, _NOT_COPIED)
                for key, offset in sorted(offsets.items())
            ],
        )
        for name, offsets in sorted(groups.items())
    ]


def set_offsets(cluster: Cluster, groups: Mapping[str, Offsets], reports: list[GroupReport]) -> None:
    """Set them. Leader epochs are left behind: they belong to the log that gave them."""
    found = describe_groups(cluster, [report.group for report in reports])
    plan: dict[str, Offsets] = {}
    for report in reports:
        described = found[report.group]
        if not described.is_at_rest:
            report.problem = f"has members in the destination, and is {described.state}: stop them first"
            report.verified = False
            continue
        plan[report.group] = {
            (one.topic, one.partition): Offset(
                one.offset, metadata=groups[report.group][one.topic, one.partition].metadata
            )
            for one in report.offsets
            if one.offset is not None
        }
    refused = commit(cluster, {name: offsets for name, offsets in plan.items() if offsets})
    now = committed_offsets(cluster, plan)
    for report in reports:
        if report.group in plan:
            _compare(report, plan[report.group], now[report.group], refused)


def _compare(
    report: GroupReport, wanted: Offsets, now: Offsets, refused: Mapping[tuple[str, TopicPartition], str]
) -> None:
    """Whether the destination has what was set; the group's first problem is told."""
    for one in report.offsets:
        key = (one.topic, one.partition)
        if (report.group, key) in refused:
            one.problem = refused[report.group, key]
        elif key in wanted and _told(now.get(key)) != _told(wanted[key]):
            one.problem = "another offset was read back"
    problems = [one.problem for one in report.offsets if one.offset is not None and one.problem is not None]
    report.verified = not problems
    if problems:
        report.problem = f"{len(problems)} offsets are not set: {problems[0]}"


def _told(offset: Offset | None) -> tuple[int, str] | None:
    return None if offset is None else (offset.offset, offset.metadata)
