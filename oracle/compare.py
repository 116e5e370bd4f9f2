"""Two brokers' fields beside each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from oracle.allowed import ALLOWED, Allowed
from oracle.having import Fields

_MISSING = "(nothing)"

COORDINATOR_ERRORS = frozenset(
    {
        "coordinator_not_available",
        "fenced_instance_id",
        "group_id_not_found",
        "group_max_size_reached",
        "group_subscribed_to_topic",
        "illegal_generation",
        "inconsistent_group_protocol",
        "invalid_commit_offset_size",
        "invalid_group_id",
        "invalid_session_timeout",
        "member_id_required",
        "non_empty_group",
        "not_coordinator",
        "offset_metadata_too_large",
        "rebalance_in_progress",
        "unknown_member_id",
        "unknown_server_error",
        "unknown_topic_or_partition",
        "unstable_offset_commit",
    }
)
"""Every error that the group coordinator can give, but for COORDINATOR_LOAD_IN_PROGRESS, which comes and goes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not the same."""

    path: str
    kafka: Any
    kohort: Any

    def __str__(self) -> str:
        return f"{self.path}: Kafka {self.kafka!r}, kohort {self.kohort!r}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one sequence."""

    name: str
    unexplained: tuple[Difference, ...]
    explained: tuple[tuple[Difference, Allowed], ...]
    unused: tuple[Allowed, ...]

    @property
    def word(self) -> str:
        if self.unexplained or self.unused:
            return "DIFFERENT"
        return "allowed difference" if self.explained else "same"

    @property
    def detail(self) -> str:
        if self.unexplained:
            return str(self.unexplained[0])
        if self.unused:
            return f"allowed, but not there: {self.unused[0].where}"
        return str(self.explained[0][0]) if self.explained else ""


def errors_in(conversations: Mapping[str, Fields]) -> set[str]:
    """Every error code that was given."""
    return {
        str(value)
        for fields in conversations.values()
        for path, value in fields.items()
        if path.rpartition(".")[2].endswith(("error_code", "error"))
    }


def judge(name: str, kafka: Fields, kohort: Fields) -> Verdict:
    """Every field that is different, explained or not."""
    rules = [rule for rule in ALLOWED if rule.sequence == name]
    unexplained, explained = [], []
    for difference in differences(kafka, kohort):
        rule = next((rule for rule in rules if fnmatchcase(difference.path, rule.pattern)), None)
        if rule is None:
            unexplained.append(difference)
        else:
            explained.append((difference, rule))
    used = {rule for _, rule in explained}
    unused = tuple(rule for rule in rules if rule not in used)
    return Verdict(name, tuple(unexplained), tuple(explained), unused)


def differences(kafka: Mapping[str, Any], kohort: Mapping[str, Any]) -> Iterator[Difference]:
    """In the order of the conversation."""
    for path in [*kafka, *(path for path in kohort if path not in kafka)]:
        theirs, ours = kafka.get(path, _MISSING), kohort.get(path, _MISSING)
        if theirs != ours or type(theirs) is not type(ours):
            yield Difference(path, theirs, ours)
