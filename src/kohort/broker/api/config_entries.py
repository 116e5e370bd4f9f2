"""Settings as CreateTopics and DescribeConfigs tell them: values, who said them, and under which other names."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kohort.broker.setting_kinds import ConfigSource, ConfigType, text_of
from kohort.broker.setting_texts import SETTING_TEXTS, text_about
from kohort.broker.settings import BrokerSetting, broker_settings, dynamic_kind
from kohort.broker.topic_settings import TOPIC_SETTINGS, TopicSetting, topic_setting_texts

if TYPE_CHECKING:
    from kohort.broker.broker import Broker


def topic_entries(broker: "Broker", name: str, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every setting of a topic that has these of its own."""
    known = broker_settings(broker.config)
    texts = topic_setting_texts(broker.topics.check_config(name, {}), settings)
    return [
        _entry(
            setting.name,
            texts[setting.name],
            _topic_synonyms(setting, texts[setting.name], known, is_own=setting.name in settings),
            is_read_only=False,
            config_type=setting.kind.type,
            documentation=setting.documentation,
        )
        for setting in TOPIC_SETTINGS.values()
    ]


def broker_entries(broker: "Broker") -> list[dict[str, Any]]:
    """Every setting of this broker."""
    return [
        _entry(
            name,
            setting.value,
            _broker_synonyms(setting),
            is_read_only=not setting.is_dynamic,
            config_type=setting.kind.type,
            documentation=text_about(name),
        )
        for name, setting in broker_settings(broker.config).items()
    ]


def cluster_entries(broker: "Broker") -> list[dict[str, Any]]:
    """What was changed for all brokers while they ran."""
    entries = []
    for name, text in sorted(broker.config.changed_for_all.items()):
        kind = dynamic_kind(name)
        told = text_of(kind.read(name, text))
        synonym = {"name": name, "value": told, "source": ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG}
        about = SETTING_TEXTS[name]
        entries.append(_entry(name, told, [synonym], is_read_only=False, config_type=kind.type, documentation=about))
    return entries


def _entry(
    name: str,
    value: str | None,
    synonyms: list[dict[str, Any]],
    *,
    is_read_only: bool,
    config_type: int,
    documentation: str | None,
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "read_only": is_read_only,
        "config_source": synonyms[0]["source"] if synonyms else ConfigSource.DEFAULT_CONFIG,
        "is_sensitive": config_type == ConfigType.PASSWORD,
        "synonyms": synonyms,
        "config_type": config_type,
        "documentation": documentation,
    }


def _topic_synonyms(
    setting: TopicSetting, text: str, known: Mapping[str, BrokerSetting], *, is_own: bool
) -> list[dict[str, Any]]:
    own = [{"name": setting.name, "value": text, "source": ConfigSource.TOPIC_CONFIG}] if is_own else []
    if setting.broker_name is None:
        return own
    if setting.broker_name in known:
        return own + _broker_synonyms(known[setting.broker_name])
    default = {
        "name": setting.broker_name,
        "value": text_of(setting.unused_default),
        "source": ConfigSource.DEFAULT_CONFIG,
    }
    return [*own, default]


def _broker_synonyms(setting: BrokerSetting) -> list[dict[str, Any]]:
    return [{"name": said.name, "value": said.text, "source": said.source} for said in setting.said]
