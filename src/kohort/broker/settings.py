"""The broker's settings, under Kafka's names, and how they are given on the command line or in a file."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, NamedTuple

from kohort.broker.setting_kinds import BadSetting, ConfigType, Kind, text_of
from kohort.broker.topic_settings import BY_BROKER_NAME, as_field, topic_config
from kohort.config import FlushMode, GroupConfig, LogConfig, TransactionConfig

__all__ = ["BadSetting", "BrokerConfig", "BrokerSetting", "broker_settings", "topic_config", "with_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Everything that can be set; field names are Kafka's with underscores."""

    host: str = "127.0.0.1"
    port: int = 9092
    data: str = "/data"
    broker_id: int = 0
    cluster_id: str = "kohort"
    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    delete_topic_enable: bool = True
    socket_request_max_bytes: int = 104_857_600
    connections_max_idle_ms: int = 600_000
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    offsets_topic_segment_bytes: int = 104_857_600
    transaction_state_log_segment_bytes: int = 104_857_600
    log_flush_mode: FlushMode = FlushMode.ALWAYS
    group: GroupConfig = field(default_factory=GroupConfig)
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    log: LogConfig = field(default_factory=LogConfig)
    given: Mapping[str, str] = field(default_factory=dict)
    """What was said about settings, as it was said."""


class BrokerSetting(NamedTuple):
    """A setting as it is, and as it would be if nobody had said anything."""

    kind: Kind
    value: str
    default: str | None
    is_given: bool


_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
"""A log needs it, but it is no topic's own."""

_OWN = {"host", "port", "data", "cluster_id"}
_LONG = {"connections_max_idle_ms", "offsets_retention_check_interval_ms"}
_LEAST = {
    "broker_id": 0,
    "num_partitions": 1,
    "socket_request_max_bytes": 1,
    "connections_max_idle_ms": 1,
    "fetch_max_bytes": 1024,
    "max_incremental_fetch_session_cache_slots": 0,
    "offsets_topic_segment_bytes": 14,
    "group_min_session_timeout_ms": 0,
    "group_max_session_timeout_ms": 0,
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 1,
    "offset_metadata_max_bytes": 0,
    "offsets_commit_timeout_ms": 1,
    "offsets_load_buffer_size": 1,
    "offsets_retention_minutes": 1,
    "offsets_retention_check_interval_ms": 1,
    "offsets_topic_compression_codec": 0,
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_segment_bytes": 14,
    **dict.fromkeys((one.name for one in fields(TransactionConfig)), 1),
}
_MOST = {"offsets_topic_compression_codec": 4}


def with_settings(config: BrokerConfig, given: Mapping[str, str]) -> BrokerConfig:
    """The settings with these changes, by Kafka's names; `BadSetting` if one is not right."""
    for name, text in given.items():
        attribute = name.replace(".", "_")
        if name in BY_BROKER_NAME:
            setting = BY_BROKER_NAME[name]
            config = replace(
                config, log=replace(config.log, **{setting.field: as_field(setting.kind.read(name, text))})
            )
        elif name == _PRODUCER_EXPIRATION:
            config = replace(config, log=replace(config.log, producer_id_expiration_ms=_EXPIRATION.read(name, text)))
        elif attribute in _GROUP_FIELDS:
            value = _read(_GROUP_FIELDS[attribute], name, text)
            config = replace(config, group=replace(config.group, **{attribute: value}))
        elif attribute in _TRANSACTION_FIELDS:
            value = _read(_TRANSACTION_FIELDS[attribute], name, text)
            config = replace(config, transaction=replace(config.transaction, **{attribute: value}))
        elif attribute in _BROKER_FIELDS:
            config = replace(config, **{attribute: _read(_BROKER_FIELDS[attribute], name, text)})
        else:
            raise BadSetting(f"there is no setting {name}")
    return replace(config, given={**config.given, **given})


def broker_settings(config: BrokerConfig) -> dict[str, BrokerSetting]:
    """Every setting of this broker, by Kafka's names. None can be changed while it runs."""
    plain = BrokerConfig()
    settings = {
        "log.dirs": BrokerSetting(Kind(ConfigType.STRING), config.data, None, True),
        _PRODUCER_EXPIRATION: _told(
            config, _PRODUCER_EXPIRATION, _EXPIRATION, config.log.producer_id_expiration_ms, _PRODUCER_ID_DEFAULT
        ),
    }
    for name, setting in BY_BROKER_NAME.items():
        value, default = setting.default(config.log), setting.default(plain.log)
        settings[name] = _told(config, name, setting.kind, value, default)
    for known, now, before in (
        (_GROUP_FIELDS, config.group, plain.group),
        (_TRANSACTION_FIELDS, config.transaction, plain.transaction),
        (_BROKER_FIELDS, config, plain),
    ):
        for attribute, one in known.items():
            name = attribute.replace("_", ".")
            settings[name] = _told(config, name, _kind(one), getattr(now, attribute), getattr(before, attribute))
    return dict(sorted(settings.items()))


def _told(config: BrokerConfig, name: str, kind: Kind, value: Any, default: Any) -> BrokerSetting:
    return BrokerSetting(kind, text_of(value), text_of(default), name in config.given)


def _kind(one: "Field[Any]") -> Kind:
    default = one.default
    if isinstance(default, bool):
        return Kind(ConfigType.BOOLEAN)
    if isinstance(default, int):
        width = ConfigType.LONG if one.name in _LONG else ConfigType.INT
        return Kind(width, _LEAST.get(one.name, -math.inf), _MOST.get(one.name, math.inf))
    if isinstance(default, FlushMode):
        return Kind(ConfigType.STRING, choices=tuple(mode.value for mode in FlushMode))
    return Kind(ConfigType.STRING)


def _read(one: "Field[Any]", name: str, text: str) -> Any:
    value = _kind(one).read(name, text)
    return FlushMode(value) if isinstance(one.default, FlushMode) else value


_GROUP_FIELDS = {one.name: one for one in fields(GroupConfig)}
_TRANSACTION_FIELDS = {one.name: one for one in fields(TransactionConfig)}
_BROKER_FIELDS = {one.name: one for one in fields(BrokerConfig) if one.name not in _OWN and one.default is not MISSING}
_EXPIRATION = Kind(ConfigType.INT, 1)
_PRODUCER_ID_DEFAULT = LogConfig().producer_id_expiration_ms
