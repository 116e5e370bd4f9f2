"""The settings of topics in a running cluster: those of their own, and how they are changed."""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.admin.cluster import Cluster
from kohort.admin.messages import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from kohort.admin.refusals import in_words

_TOPIC = 2
_SET, _DELETE = 0, 1
_OWN = 1
"""DYNAMIC_TOPIC_CONFIG: somebody has said it of this topic."""
_AT_ONCE = 100
_LONGEST_REASON = 200


def own_settings(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """The settings that topics have of their own; those whose settings we may not see are left out."""
    names = list(topics)
    found: dict[str, dict[str, str]] = {}
    for start in range(0, len(names), _AT_ONCE):
        asked = [
            {"resource_type": _TOPIC, "resource_name": name, "configuration_keys": None}
            for name in names[start : start + _AT_ONCE]
        ]
        answer = cluster.run(cluster.ask_any(DESCRIBE_CONFIGS, resources=asked))
        for told in answer.results:
            if not told.error_code:
                found[told.resource_name] = {
                    entry.name: entry.value
                    for entry in told.configs
                    if entry.config_source == _OWN and entry.value is not None and not entry.is_sensitive
                }
    return found


def change_settings(cluster: Cluster, topic: str, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Set what a topic says of itself, None being nothing. All that can be is set in one go; the others come back, each
    with the reason."""
    refused = {}
    for name, value in changes.items():
        if reason := _alter(cluster, topic, {name: value}, validate_only=True):
            refused[name] = reason
    left = {name: value for name, value in changes.items() if name not in refused}
    if left and (reason := _alter(cluster, topic, left, validate_only=False)):
        refused |= dict.fromkeys(left, reason)
    return refused


def _alter(cluster: Cluster, topic: str, changes: Mapping[str, str | None], *, validate_only: bool) -> str | None:
    """Why it cannot be; None if it can."""
    configs = [
        {"name": name, "config_operation": _DELETE if value is None else _SET, "value": value}
        for name, value in changes.items()
    ]
    resource = {"resource_type": _TOPIC, "resource_name": topic, "configs": configs}
    answer = cluster.run(cluster.ask_any(INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=validate_only))
    return next((reason_of(told) for told in answer.responses if told.error_code), None)


def reason_of(told: Any) -> str:
    """A refusal with what the broker says about it."""
    words = in_words(told.error_code)
    message = (told.error_message or "")[:_LONGEST_REASON]
    return f"{words}: {message}" if message else words
