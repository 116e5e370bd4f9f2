"""What the commands of `kohort groups` have in common: how to get into a cluster, which groups, which partitions."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from kohort.admin.cluster import Cluster
from kohort.admin.groups import list_groups
from kohort.admin.refusals import named
from kohort.cli.command_config import COMMAND_CONFIG_HELP
from kohort.log.cluster import TopicPartition
from kohort.log.security import parse_security, read_properties

F = TypeVar("F", bound=Callable[..., Any])

LARGEST_OFFSET = (1 << 63) - 1
_LARGEST_PARTITION = (1 << 31) - 1
_LONGEST_NAME = 0x7FFF
_MOST_NAMES = 10
"""How many names a line has."""
_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?)(\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def text(value: str) -> str:
    """A name that a request can hold and that is meant: bytes that are no UTF-8 would become another name."""
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is not UTF-8") from None
    if len(data) > _LONGEST_NAME:
        raise click.BadParameter(f"is longer than {_LONGEST_NAME} bytes")
    return value


class Topics(tuple[str, tuple[int, ...] | None]):
    """A topic, and which of its partitions; None means all."""

    __slots__ = ()


def topic_partitions(value: str) -> Topics:
    """TOPIC or TOPIC:0,1,2."""
    topic, colon, numbers = value.partition(":")
    text(topic)
    if not topic or (colon and not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})*", numbers)):
        raise click.BadParameter(f"{value!r} is neither TOPIC nor TOPIC:0,1,2")
    if not colon:
        return Topics((topic, None))
    found = tuple(dict.fromkeys(int(number) for number in numbers.split(",")))
    if max(found) > _LARGEST_PARTITION:
        raise click.BadParameter(f"{value!r}: there is no partition {max(found)}")
    return Topics((topic, found))


def duration(value: str) -> int:
    """A length of time in milliseconds, as java.time.Duration writes it: PnDTnHnMnS."""
    found = _DURATION.fullmatch(value)
    if found is None or (found[2] is None and found[3] is None):
        raise click.BadParameter(f"{value!r} is no duration: P1DT12H, PT30M, PT1.5S")
    sign, days, _, hours, minutes, second_sign, seconds, fraction = found.groups()
    millis = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60_000
    of_seconds = int(seconds or 0) * 1000 + int((fraction or "").ljust(3, "0")[:3])
    millis += -of_seconds if second_sign == "-" else of_seconds
    return -millis if sign == "-" else millis


def cluster_options(command: F) -> F:
    """Where the cluster is and how to get in."""
    options = (
        click.option(
            "--bootstrap", "--bootstrap-server", required=True, metavar="HOST:PORT", help="A broker of the cluster."
        ),
        click.option("--command-config", type=click.Path(path_type=Path), help=COMMAND_CONFIG_HELP),
        click.option(
            "--timeout",
            type=click.IntRange(min=1, max=86_400_000),
            default=30_000,
            show_default=True,
            help="How long to wait for the cluster, in milliseconds.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def open_cluster(bootstrap: str, command_config: Path | None, timeout: int) -> Cluster:
    security = parse_security({} if command_config is None else read_properties(command_config))
    return Cluster(bootstrap, security, patience_s=timeout / 1000)


def format_option(*formats: str) -> Callable[[F], F]:
    return click.option(
        "--format",
        "format_",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="json for scripts.",
    )


def group_options(command: F) -> F:
    """Which groups: those that are named, or all."""
    several = "This group; may be given several times."
    command = click.option("--all-groups", is_flag=True, help="All groups of consumers.")(command)
    return click.option("--group", "names", multiple=True, type=text, help=several)(command)


def topics_option(*, required: bool = False) -> Callable[[F], F]:
    return click.option(
        "--topic",
        "topics",
        multiple=True,
        required=required,
        type=topic_partitions,
        metavar="TOPIC[:0,1,2]",
        help="A topic, or some of its partitions; may be given several times.",
    )


def check_groups(names: Sequence[str], all_groups: bool) -> None:
    if bool(names) == all_groups:
        raise click.UsageError("either --group or --all-groups must be given")


def chosen_groups(cluster: Cluster, names: Sequence[str], all_groups: bool) -> list[str]:
    return [listed.group for listed in list_groups(cluster)] if all_groups else list(dict.fromkeys(names))


def expand_topics(cluster: Cluster, topics: Iterable[Topics]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that are meant, and the topics that the cluster does not have."""
    found: list[TopicPartition] = []
    missing = []
    for topic, numbers in topics:
        these = cluster.partitions_of(topic) if numbers is None else numbers
        found += [(topic, number) for number in these]
        if not these:
            missing.append(topic)
    return list(dict.fromkeys(found)), missing


def names_of(names: Sequence[str]) -> str:
    shown = ", ".join(named(name) for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
