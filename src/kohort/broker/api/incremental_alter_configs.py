"""IncrementalAlterConfigs (44): some of a topic's settings change, the others stay (KIP-339).

0 as before · 1 flexible
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.config_resources import change_settings
from kohort.broker.api.refusal import Refused
from kohort.broker.setting_kinds import ConfigType, text_of
from kohort.broker.topic_settings import setting_named
from kohort.config import LogConfig
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@api(44, 0, 1)
def incremental_alter_configs(broker: "Broker", call: "Call") -> None:
    change_settings(broker, call, _changed)


def _changed(settings: Mapping[str, str], configs: list[Any]) -> dict[str, str]:
    after = dict(settings)
    for entry in configs:
        if entry.config_operation not in set(_Operation):
            raise Refused(ErrorCode.INVALID_REQUEST, f"{entry.name}: there is no operation {entry.config_operation}")
        operation = _Operation(entry.config_operation)
        if operation is _Operation.DELETE:
            after.pop(entry.name, None)
            continue
        if entry.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"{operation.name} of {entry.name} without a value")
        if operation is _Operation.SET:
            after[entry.name] = entry.value
        else:
            after[entry.name] = _edited_list(operation, entry, after.get(entry.name))
    return after


def _edited_list(operation: _Operation, entry: Any, before: str | None) -> str:
    """A list with more or less in it; one that the topic does not have yet begins as Kafka's default."""
    setting = setting_named(entry.name)
    if setting.kind.type is not ConfigType.LIST:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{operation.name} is for lists, and {entry.name} is none")
    old = _parts(text_of(setting.default(LogConfig())) if before is None else before)
    given = _parts(entry.value)
    if operation is _Operation.APPEND:
        return ",".join(dict.fromkeys([*old, *given]))
    return ",".join(part for part in old if part not in given)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
