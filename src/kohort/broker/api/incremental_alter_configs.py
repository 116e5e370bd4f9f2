"""IncrementalAlterConfigs (44): some settings of a topic or a broker change, the others stay (KIP-339).

0 as before · 1 flexible
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.config_resources import change_settings
from kohort.broker.api.refusal import Refused
from kohort.broker.security.permission import ALTER_CLUSTER_CONFIGS, ALTER_TOPIC_CONFIGS
from kohort.broker.setting_kinds import ConfigType, Kind, text_of
from kohort.broker.topic_settings import BY_BROKER_NAME, setting_named
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


@api(44, 0, 1, permissions=(ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS))
def incremental_alter_configs(broker: "Broker", call: "Call") -> None:
    change_settings(broker, call, _changed)


def _changed(settings: Mapping[str, str], configs: list[Any], kind_of: Callable[[str], Kind]) -> dict[str, str]:
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
            after[entry.name] = _edited_list(operation, entry, after.get(entry.name), kind_of(entry.name))
    return after


def _edited_list(operation: _Operation, entry: Any, before: str | None, kind: Kind) -> str:
    """A list with more or less in it; one of which nothing was said yet begins as Kafka's default."""
    if kind.type is not ConfigType.LIST:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{operation.name} is for lists, and {entry.name} is none")
    setting = BY_BROKER_NAME[entry.name] if entry.name in BY_BROKER_NAME else setting_named(entry.name)
    old = _parts(text_of(setting.default(LogConfig())) if before is None else before)
    given = _parts(entry.value)
    if operation is _Operation.APPEND:
        return ",".join(dict.fromkeys([*old, *given]))
    return ",".join(part for part in old if part not in given)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
