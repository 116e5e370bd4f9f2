"""AlterConfigs (33): the settings of a topic, or what was changed of a broker's, become exactly these.

0, 1 as before · 2 flexible
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.config_resources import change_settings
from kohort.broker.api.refusal import Refused
from kohort.broker.security.permission import ALTER_CLUSTER_CONFIGS, ALTER_TOPIC_CONFIGS
from kohort.broker.setting_kinds import Kind
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(33, 0, 2, permissions=(ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS))
def alter_configs(broker: "Broker", call: "Call") -> None:
    change_settings(broker, call, _replaced)


def _replaced(_: Mapping[str, str], configs: list[Any], __: Callable[[str], Kind]) -> dict[str, str]:
    nulls = [entry.name for entry in configs if entry.value is None]
    if nulls:
        raise Refused(ErrorCode.INVALID_REQUEST, f"settings without a value: {', '.join(nulls)}")
    return {entry.name: entry.value for entry in configs}
