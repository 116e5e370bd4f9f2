"""The settings of a topic: what they are called, what they may be, and what the broker calls their default.

Those with a field steer a log, and `LogConfig` has their default. The others have nothing to steer in this broker:
they are checked, kept and described, so that what was written for Kafka runs, and their documentation says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kohort.broker.setting_kinds import BadSetting, ConfigType, Kind, text_of
from kohort.config import LONGEST_MS, LogConfig

_SMALLEST_SEGMENT = 14
_NO_EFFECT = " Kept, but without effect in this broker."


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One setting. `broker_name` is the broker's setting that is its default, if there is one."""

    name: str
    kind: Kind
    broker_name: str | None
    about: str
    unused_default: Any = None
    """The default of a setting that steers nothing."""

    @property
    def is_used(self) -> bool:
        return self.unused_default is None

    @property
    def documentation(self) -> str:
        return self.about if self.is_used else self.about + _NO_EFFECT

    @property
    def field(self) -> str:
        """Its name in `LogConfig`."""
        return self.name.replace(".", "_")

    def default(self, config: LogConfig) -> Any:
        """What it is for topics that say nothing, given the broker's settings."""
        return getattr(config, self.field) if self.is_used else self.unused_default


def _integer(least: int) -> Kind:
    return Kind(ConfigType.INT, least)


def _long(least: int) -> Kind:
    return Kind(ConfigType.LONG, least)


_BOOLEAN = Kind(ConfigType.BOOLEAN)
_LIST = Kind(ConfigType.LIST)
_POLICY = Kind(ConfigType.LIST, choices=("compact", "delete"))
_TIME = Kind(ConfigType.STRING, choices=("CreateTime", "LogAppendTime"))
_CODEC = Kind(ConfigType.STRING, choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"))
_SHARE = Kind(ConfigType.DOUBLE, 0, 1)

_ALL = (
    TopicSetting("cleanup.policy", _POLICY, "log.cleanup.policy", "What becomes of old records."),
    TopicSetting("compression.type", _CODEC, "compression.type", "How records are stored.", "producer"),
    TopicSetting(
        "delete.retention.ms", _long(0), "log.cleaner.delete.retention.ms", "How long tombstones are kept when cleaned."
    ),
    TopicSetting("file.delete.delay.ms", _long(0), "log.segment.delete.delay.ms", "How long unused files stay."),
    TopicSetting("flush.messages", _long(0), "log.flush.interval.messages", "Records between two syncs.", LONGEST_MS),
    TopicSetting("flush.ms", _long(0), "log.flush.interval.ms", "Time between two syncs.", LONGEST_MS),
    TopicSetting("follower.replication.throttled.replicas", _LIST, None, "Followers that are slowed down.", ()),
    TopicSetting("index.interval.bytes", _integer(0), "log.index.interval.bytes", "Bytes between two index entries."),
    TopicSetting("leader.replication.throttled.replicas", _LIST, None, "Leaders that are slowed down.", ()),
    TopicSetting(
        "max.compaction.lag.ms",
        _long(1),
        "log.cleaner.max.compaction.lag.ms",
        "How long a record may stay uncompacted.",
        LONGEST_MS,
    ),
    TopicSetting("max.message.bytes", _integer(0), "message.max.bytes", "The largest batch of records."),
    TopicSetting(
        "message.downconversion.enable",
        _BOOLEAN,
        "log.message.downconversion.enable",
        "Whether records are rewritten for old consumers.",
        True,
    ),
    TopicSetting(
        "message.format.version",
        Kind(ConfigType.STRING),
        "log.message.format.version",
        "The version in which records are stored.",
        "2.6-IV0",
    ),
    TopicSetting(
        "message.timestamp.after.max.ms",
        _long(0),
        "log.message.timestamp.after.max.ms",
        "How far a record's time may be ahead of ours.",
    ),
    TopicSetting(
        "message.timestamp.before.max.ms",
        _long(0),
        "log.message.timestamp.before.max.ms",
        "How old a record may be when it comes.",
    ),
    TopicSetting(
        "message.timestamp.difference.max.ms",
        _long(0),
        "log.message.timestamp.difference.max.ms",
        "How far a record's time may be from ours, where the two others say nothing.",
    ),
    TopicSetting(
        "message.timestamp.type", _TIME, "log.message.timestamp.type", "Whose clock gives records their time."
    ),
    TopicSetting(
        "min.cleanable.dirty.ratio", _SHARE, "log.cleaner.min.cleanable.ratio", "How dirty a log is when it is cleaned."
    ),
    TopicSetting(
        "min.compaction.lag.ms",
        _long(0),
        "log.cleaner.min.compaction.lag.ms",
        "How long a record stays uncompacted at least.",
    ),
    TopicSetting("min.insync.replicas", _integer(1), "min.insync.replicas", "Replicas that must have a record.", 1),
    TopicSetting("preallocate", _BOOLEAN, "log.preallocate", "Whether segments are made in full size.", False),
    TopicSetting("retention.bytes", Kind(ConfigType.LONG), "log.retention.bytes", "Bytes that are kept; -1: all."),
    TopicSetting("retention.ms", _long(-1), "log.retention.ms", "How long records are kept; -1: for ever."),
    TopicSetting("segment.bytes", _integer(_SMALLEST_SEGMENT), "log.segment.bytes", "The size of a segment file."),
    TopicSetting("segment.index.bytes", _integer(0), "log.index.size.max.bytes", "The size of a segment's index."),
    TopicSetting("segment.jitter.ms", _long(0), "log.roll.jitter.ms", "Makes segments end at different times.", 0),
    TopicSetting("segment.ms", _long(1), "log.roll.ms", "How long a segment is written to."),
    TopicSetting(
        "unclean.leader.election.enable",
        _BOOLEAN,
        "unclean.leader.election.enable",
        "Whether a replica that is behind may lead.",
        False,
    ),
)
TOPIC_SETTINGS: Mapping[str, TopicSetting] = {setting.name: setting for setting in _ALL}
BY_BROKER_NAME: Mapping[str, TopicSetting] = {
    setting.broker_name: setting for setting in _ALL if setting.broker_name is not None and setting.is_used
}
"""What a topic's setting is called when it is the default of all topics."""


def setting_named(name: str) -> TopicSetting:
    """`BadSetting` if topics have no such setting."""
    if name not in TOPIC_SETTINGS:
        raise BadSetting(f"there is no topic setting {name}")
    return TOPIC_SETTINGS[name]


def topic_config(base: LogConfig, settings: Mapping[str, str]) -> LogConfig:
    """The settings of a topic that differs from the broker's defaults in these; `BadSetting` if one is not right."""
    values = {name: setting_named(name).kind.read(name, text) for name, text in settings.items()}
    config = replace(base, **{TOPIC_SETTINGS[name].field: as_field(v) for name, v in values.items() if _is_used(name)})
    longest = values.get("max.compaction.lag.ms", LONGEST_MS)
    if config.min_compaction_lag_ms > longest:
        raise BadSetting(f"min.compaction.lag.ms {config.min_compaction_lag_ms} > max.compaction.lag.ms {longest}")
    return config


def topic_setting_texts(base: LogConfig, settings: Mapping[str, str]) -> dict[str, str]:
    """Every setting of a topic as text, by Kafka's names."""
    config = topic_config(base, settings)
    return {
        name: text_of(setting.kind.read(name, settings[name]) if name in settings else setting.default(config))
        for name, setting in TOPIC_SETTINGS.items()
    }


def as_field(value: Any) -> Any:
    """As `LogConfig` keeps it."""
    return frozenset(value) if isinstance(value, tuple) else value


def _is_used(name: str) -> bool:
    return TOPIC_SETTINGS[name].is_used
