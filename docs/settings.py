"""Writes `docs/reference/settings.md`: every setting of the broker and of topics, from the code that reads them."""

from collections.abc import Iterator

from docs.options import cells
from kohort.broker.setting_kinds import ConfigType, Kind, text_of
from kohort.broker.setting_texts import SETTING_TEXTS
from kohort.broker.settings import BrokerConfig, broker_settings
from kohort.broker.topic_settings import TOPIC_SETTINGS
from kohort.config import LONGEST_MS, LogConfig

INTRO = """# Settings

<!-- written by `python -m docs` from the settings themselves -->

Names, types, limits and defaults are Kafka's, except for `log.flush.mode`. `kohort serve` takes them with
`--set NAME=VALUE` and from `--config FILE`; `kohort.testing` with `Broker(settings={...})`. Clients read them with
DescribeConfigs, and change those that are marked *while it runs* with IncrementalAlterConfigs, as in Kafka. A name that
is not here is refused.

## Of the broker
"""

TOPICS = """
## Of a topic

Given when a topic is made (CreateTopics) or changed later. What a topic does not say is the broker's default for all
topics, which has the name in the last column.
"""


def page() -> str:
    """The whole of `docs/reference/settings.md`."""
    return "\n".join([INTRO, *_broker(), TOPICS, *_topics(), ""])


def _broker() -> Iterator[str]:
    yield "| setting | default | values | |"
    yield "|---|---|---|---|"
    for name, setting in broker_settings(BrokerConfig()).items():
        default = "" if name == "log.dirs" else _default(setting.value)
        changed = " *While it runs.*" if setting.is_dynamic else ""
        yield cells(f"`{name}`", default, _values(setting.kind), SETTING_TEXTS[name] + changed)


def _topics() -> Iterator[str]:
    yield "| setting | default | values | | the broker's |"
    yield "|---|---|---|---|---|"
    for name, setting in TOPIC_SETTINGS.items():
        default = _default(text_of(setting.default(LogConfig())))
        broker_name = f"`{setting.broker_name}`" if setting.broker_name else ""
        yield cells(f"`{name}`", default, _values(setting.kind), setting.documentation, broker_name)


def _default(text: str | None) -> str:
    if not text:
        return ""
    return "no limit" if text == str(LONGEST_MS) else f"`{text}`"


def _values(kind: Kind) -> str:
    if kind.choices:
        return (", " if kind.type is ConfigType.LIST else " or ").join(
            f"`{choice}`" for choice in kind.choices if choice
        )
    if kind.least == float("-inf"):
        return kind.type.name.lower()
    most = f" to {kind.most:.12g}" if kind.most != float("inf") else " or more"
    return f"{kind.least:.12g}{most}"
