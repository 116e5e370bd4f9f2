"""The broker's settings, under Kafka's names: given when it starts, or changed while it runs.

What was said last about a setting does not count most, but who said it: a change for this broker before one for all
brokers, that before the command line or the file, and that before the default. Kafka allows few settings to be changed
while a broker runs, and so do we: the defaults of topics, and how the cleaner works.

Some times go by several names: milliseconds count before minutes, and those before hours.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, NamedTuple

from kohort.broker.security.ip_limits import parse_overrides
from kohort.broker.security.listener_settings import (
    LISTENER_FIELDS,
    OF_A_LISTENER,
    ListenerConfig,
    check_for_all,
    scope_of,
)
from kohort.broker.security.principal import read_principals
from kohort.broker.setting_kinds import BadSetting, ConfigSource, ConfigType, Kind, text_of
from kohort.broker.topic_settings import BY_BROKER_NAME, as_field, topic_config
from kohort.config import FlushMode, GroupConfig, LogConfig, TransactionConfig

__all__ = [
    "BadSetting",
    "BrokerConfig",
    "BrokerSetting",
    "broker_settings",
    "dynamic_kind",
    "topic_config",
    "with_changes",
    "with_settings",
]


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
    queued_max_request_bytes: int = -1
    request_receive_timeout_ms: int = 30_000
    max_connections: int = 2_147_483_647
    max_connections_per_ip: int = 2_147_483_647
    max_connections_per_ip_overrides: str = ""
    max_connection_creation_rate: int = 2_147_483_647
    max_connections_half_open: int = 1_000
    connection_setup_timeout_ms: int = 30_000
    connections_max_idle_ms: int = 600_000
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    fetch_max_bytes: int = 57_671_680
    max_incremental_fetch_session_cache_slots: int = 1_000
    http_allow_anonymous: bool = False
    offsets_topic_segment_bytes: int = 104_857_600
    transaction_state_log_segment_bytes: int = 104_857_600
    log_flush_mode: FlushMode = FlushMode.ALWAYS
    authorizer_class_name: str = ""
    super_users: str = ""
    allow_everyone_if_no_acl_found: bool = False
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    store_lease_ms: int = 5_000
    group: GroupConfig = field(default_factory=GroupConfig)
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    log: LogConfig = field(default_factory=LogConfig)
    listener: ListenerConfig = field(default_factory=ListenerConfig)
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What was said about settings when the broker was started, as it was said."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """What was said for this broker while it ran."""
    changed_for_all: Mapping[str, str] = field(default_factory=dict)
    """What was said for all brokers while they ran."""


class Said(NamedTuple):
    """Something that was said about a setting, under one of its names."""

    source: ConfigSource
    name: str
    text: str | None
    """None of what is secret."""


class BrokerSetting(NamedTuple):
    """A setting as it is, and who has said what about it, from the one that counts on."""

    kind: Kind
    value: str | None
    """None of what is secret, and of what nobody has said."""
    is_dynamic: bool
    said: tuple[Said, ...]


class _Time(NamedTuple):
    """Another name of a time that steers logs."""

    field: str
    unit_ms: int
    kind: Kind
    default: str | None


_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_TIMES = {
    "log.retention.hours": _Time("retention_ms", _HOUR_MS, Kind(ConfigType.INT), "168"),
    "log.retention.minutes": _Time("retention_ms", _MINUTE_MS, Kind(ConfigType.INT), None),
    "log.roll.hours": _Time("segment_ms", _HOUR_MS, Kind(ConfigType.INT, 1), "168"),
}
"""From the weakest to the strongest, which is the setting's own name."""

_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
"""A log needs it, but it is no topic's own."""

_DYNAMIC = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        *BY_BROKER_NAME,
    }
)
"""What Kafka allows to be changed while a broker runs, of what we have."""

_OWN = {"host", "port", "data", "cluster_id"}
_LONG = {
    "connections_max_idle_ms",
    "group_coordinator_max_bytes",
    "group_max_bytes",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "offsets_retention_check_interval_ms",
    "queued_max_request_bytes",
}
_LEAST = {
    "broker_id": 0,
    "num_partitions": 1,
    "socket_request_max_bytes": 1,
    "queued_max_request_bytes": -1,
    "request_receive_timeout_ms": 1,
    "max_connections": 0,
    "max_connections_per_ip": 0,
    "max_connection_creation_rate": 0,
    "max_connections_half_open": 1,
    "connection_setup_timeout_ms": 1,
    "connections_max_idle_ms": 1,
    "quota_window_num": 1,
    "quota_window_size_seconds": 1,
    "fetch_max_bytes": 1024,
    "log_cleaner_backoff_ms": 0,
    "log_cleaner_dedupe_buffer_size": 1,
    "max_incremental_fetch_session_cache_slots": 0,
    "store_lease_ms": 1_000,
    "offsets_topic_segment_bytes": 14,
    "group_min_session_timeout_ms": 0,
    "group_max_session_timeout_ms": 0,
    "group_initial_rebalance_delay_ms": 0,
    "group_max_size": 1,
    "group_max_bytes": 1,
    "group_coordinator_max_bytes": 1,
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
_CHOICES = {
    "authorizer_class_name": (
        "",
        "kafka.security.authorizer.AclAuthorizer",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ),
}


def with_settings(config: BrokerConfig, given: Mapping[str, str]) -> BrokerConfig:
    """The settings as they are given at the start, by Kafka's names; `BadSetting` if one is not right."""
    return _settled(replace(config, given={**config.given, **given}))


def with_changes(config: BrokerConfig, changed: Mapping[str, str], changed_for_all: Mapping[str, str]) -> BrokerConfig:
    """The settings with all that was said while the broker ran; `BadSetting` if that cannot be."""
    for name, text in (*changed.items(), *changed_for_all.items()):
        dynamic_kind(name)
        _with_value(config, name, text)  # each must be right, whether or not it is the one that counts
    for name in (*config.changed, *config.changed_for_all):
        config = _with_default(config, name)
    return _settled(replace(config, changed=dict(changed), changed_for_all=dict(changed_for_all)))


def dynamic_kind(name: str) -> Kind:
    """What values a setting can have that can be changed while the broker runs; `BadSetting` if this one cannot."""
    if name not in _DYNAMIC:
        known = name in broker_settings(BrokerConfig())
        raise BadSetting(f"{name} cannot be changed while the broker runs" if known else f"there is no setting {name}")
    return BY_BROKER_NAME[name].kind if name in BY_BROKER_NAME else _kind(_BROKER_FIELDS[name.replace(".", "_")])


def _settled(config: BrokerConfig) -> BrokerConfig:
    """The values that follow from all that is said."""
    said = {**config.given, **config.changed_for_all, **config.changed}
    for name in (*(name for name in _TIMES if name in said), *(name for name in said if name not in _TIMES)):
        config = _with_value(config, name, said[name])
    return config


def _with_default(config: BrokerConfig, name: str) -> BrokerConfig:
    """What a setting that can be changed is when nobody says anything."""
    if name in BY_BROKER_NAME:
        setting = BY_BROKER_NAME[name]
        return replace(config, log=replace(config.log, **{setting.field: setting.default(LogConfig())}))
    attribute = name.replace(".", "_")
    return replace(config, **{attribute: getattr(BrokerConfig(), attribute)})


def _with_value(config: BrokerConfig, name: str, text: str) -> BrokerConfig:
    attribute = name.replace(".", "_")
    value: Any
    if name in _TIMES:
        time = _TIMES[name]
        value = _checked_time(name, time.kind.read(name, text) * time.unit_ms)
        return replace(config, log=replace(config.log, **{time.field: value}))
    if name in BY_BROKER_NAME:
        setting = BY_BROKER_NAME[name]
        value = as_field(setting.kind.read(name, text))
        if setting.field == "retention_ms":
            value = _checked_time(name, value)
        return replace(config, log=replace(config.log, **{setting.field: value}))
    if name == _PRODUCER_EXPIRATION:
        return replace(config, log=replace(config.log, producer_id_expiration_ms=_EXPIRATION.read(name, text)))
    if name.startswith(OF_A_LISTENER):
        scope_of(name).kind.read(name, text)
        return config
    if attribute in LISTENER_FIELDS:
        check_for_all(name)
        value = _read(LISTENER_FIELDS[attribute], name, text)
        return replace(config, listener=replace(config.listener, **{attribute: value}))
    if attribute in _GROUP_FIELDS:
        value = _read(_GROUP_FIELDS[attribute], name, text)
        return replace(config, group=replace(config.group, **{attribute: value}))
    if attribute in _TRANSACTION_FIELDS:
        value = _read(_TRANSACTION_FIELDS[attribute], name, text)
        return replace(config, transaction=replace(config.transaction, **{attribute: value}))
    if attribute in _BROKER_FIELDS:
        value = _read(_BROKER_FIELDS[attribute], name, text)
        if attribute == "max_connections_per_ip_overrides":
            parse_overrides(value)
        return replace(config, **{attribute: value})
    raise BadSetting(f"there is no setting {name}")


def _checked_time(name: str, value: int) -> int:
    """Whatever is below 0 means for ever; nothing can be kept for no time at all."""
    if value == 0:
        raise BadSetting(f"{name} cannot be 0: it must be -1 or at least 1")
    return max(value, -1)


def broker_settings(config: BrokerConfig) -> dict[str, BrokerSetting]:
    """Every setting of this broker, by Kafka's names."""
    plain = BrokerConfig()
    place = Said(ConfigSource.STATIC_BROKER_CONFIG, "log.dirs", config.data)
    settings = {
        "log.dirs": BrokerSetting(Kind(ConfigType.STRING), config.data, False, (place,)),
        _PRODUCER_EXPIRATION: _told(
            config, _PRODUCER_EXPIRATION, _EXPIRATION, config.log.producer_id_expiration_ms, _PRODUCER_ID_DEFAULT
        ),
    }
    for name, time in _TIMES.items():
        settings[name] = _told_time(config, name, time.kind, ())
    for name, setting in BY_BROKER_NAME.items():
        if weaker := [other for other, time in reversed(_TIMES.items()) if time.field == setting.field]:
            settings[name] = _told_time(config, name, setting.kind, weaker)
        else:
            settings[name] = _told(config, name, setting.kind, setting.default(config.log), setting.default(plain.log))
    for known, now, before in (
        (_GROUP_FIELDS, config.group, plain.group),
        (_TRANSACTION_FIELDS, config.transaction, plain.transaction),
        (_BROKER_FIELDS, config, plain),
        (LISTENER_FIELDS, config.listener, plain.listener),
    ):
        for attribute, one in known.items():
            name = attribute.replace("_", ".")
            settings[name] = _told(config, name, _kind(one), getattr(now, attribute), getattr(before, attribute))
    for name in config.given:
        if name.startswith(OF_A_LISTENER):
            kind = scope_of(name).kind
            said = tuple(_said(config, name, kind))
            settings[name] = BrokerSetting(kind, said[0].text, False, said)
    return dict(sorted(settings.items()))


def _told(config: BrokerConfig, name: str, kind: Kind, value: Any, default: Any) -> BrokerSetting:
    by_default = () if default is None else (Said(ConfigSource.DEFAULT_CONFIG, name, text_of(default)),)
    return BrokerSetting(kind, _shown(kind, value), name in _DYNAMIC, (*_said(config, name, kind), *by_default))


def _shown(kind: Kind, value: Any) -> str | None:
    return None if value is None or kind.is_secret else text_of(value)


def _told_time(config: BrokerConfig, name: str, kind: Kind, weaker: Sequence[str]) -> BrokerSetting:
    """A time with several names has what was said under this one, and counts before what was said under `weaker`."""
    own, default = list(_said(config, name, kind)), _TIMES[name].default if name in _TIMES else None
    said = own + [one for other in weaker for one in _said(config, other, _TIMES[other].kind)]
    for other in (name, *(weaker if said else ())):
        if (text := _TIMES[other].default if other in _TIMES else None) is not None:
            said.append(Said(ConfigSource.DEFAULT_CONFIG, other, text))
    return BrokerSetting(kind, own[0].text if own else default, name in _DYNAMIC, tuple(said))


def _said(config: BrokerConfig, name: str, kind: Kind) -> Iterator[Said]:
    for source, texts in (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, config.changed),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, config.changed_for_all),
        (ConfigSource.STATIC_BROKER_CONFIG, config.given),
    ):
        if name in texts:
            yield Said(source, name, _shown(kind, kind.read(name, texts[name])))


def _kind(one: "Field[Any]") -> Kind:
    default, told = one.default, one.metadata.get("kind")
    if isinstance(told, Kind):
        return told
    if isinstance(default, bool):
        return Kind(ConfigType.BOOLEAN)
    if isinstance(default, int):
        width = ConfigType.LONG if one.name in _LONG else ConfigType.INT
        return Kind(width, _LEAST.get(one.name, -math.inf), _MOST.get(one.name, math.inf))
    if isinstance(default, FlushMode):
        return Kind(ConfigType.STRING, choices=tuple(mode.value for mode in FlushMode))
    return Kind(ConfigType.STRING, choices=_CHOICES.get(one.name, ()))


def _read(one: "Field[Any]", name: str, text: str) -> Any:
    value = _kind(one).read(name, text)
    if one.name == "super_users":
        _check_principals(name, value)
    return FlushMode(value) if isinstance(one.default, FlushMode) else value


def _check_principals(name: str, value: str) -> None:
    try:
        read_principals(value)
    except ValueError as error:
        raise BadSetting(f"{name}: {error}") from None


_GROUP_FIELDS = {one.name: one for one in fields(GroupConfig)}
_TRANSACTION_FIELDS = {one.name: one for one in fields(TransactionConfig)}
_BROKER_FIELDS = {one.name: one for one in fields(BrokerConfig) if one.name not in _OWN and one.default is not MISSING}
_EXPIRATION = Kind(ConfigType.INT, 1)
_PRODUCER_ID_DEFAULT = LogConfig().producer_id_expiration_ms
