"""Settings: what they may be, and what they are when nobody says anything."""

import pytest

from kohort.broker.setting_kinds import BadSetting, ConfigSource
from kohort.broker.setting_texts import SETTING_TEXTS
from kohort.broker.settings import BrokerConfig, broker_settings, with_changes, with_settings
from kohort.broker.topic_settings import TOPIC_SETTINGS, topic_config, topic_setting_texts
from kohort.config import FlushMode, LogConfig
from kohort.errors import ErrorCode


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "-1"),
        ("segment.bytes", "13"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", ""),
        ("segment.bytes", "1e3"),
        ("segment.bytes", "1_000"),
        ("segment.bytes", "١٠٠"),
        ("segment.bytes", "9" * 10_000),
        ("segment.ms", "0"),
        ("segment.ms", "9223372036854775808"),
        ("segment.jitter.ms", "-1"),
        ("segment.index.bytes", "-1"),
        ("index.interval.bytes", "-1"),
        ("max.message.bytes", "-1"),
        ("retention.ms", "-2"),
        ("retention.bytes", "much"),
        ("delete.retention.ms", "-1"),
        ("min.compaction.lag.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("file.delete.delay.ms", "-1"),
        ("flush.ms", "-1"),
        ("flush.messages", "-1"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "-0.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.insync.replicas", "0"),
        ("cleanup.policy", "keep"),
        ("cleanup.policy", "compact,keep"),
        ("cleanup.policy", "compact,"),
        ("message.timestamp.type", "createtime"),
        ("compression.type", "brotli"),
        ("preallocate", "yes"),
        ("unclean.leader.election.enable", ""),
        ("no.such.setting", "1"),
        ("producer.id.expiration.ms", "1"),
    ],
)
def test_a_topic_cannot_have_a_setting_that_kafka_refuses(name: str, text: str):
    with pytest.raises(BadSetting, match=name) as refusal:
        topic_config(LogConfig(), {name: text})
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("segment.bytes", "14", "14"),
        ("segment.bytes", " +100 ", "100"),
        ("retention.ms", "-1", "-1"),
        ("retention.bytes", "-9223372036854775808", "-9223372036854775808"),
        ("max.message.bytes", "0", "0"),
        ("min.cleanable.dirty.ratio", "0", "0.0"),
        ("cleanup.policy", "compact", "compact"),
        ("cleanup.policy", "delete , compact", "delete,compact"),
        ("cleanup.policy", "", ""),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("compression.type", "zstd", "zstd"),
        ("preallocate", "TRUE", "true"),
        ("min.insync.replicas", "2", "2"),
    ],
)
def test_a_topic_has_what_kafka_takes_and_tells_it_as_kafka_does(name: str, text: str, told: str):
    assert topic_setting_texts(LogConfig(), {name: text})[name] == told


def test_a_compaction_lag_must_leave_room_between_least_and_most():
    with pytest.raises(BadSetting):
        topic_config(LogConfig(), {"min.compaction.lag.ms": "11", "max.compaction.lag.ms": "10"})
    topic_config(LogConfig(), {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "10"})


def test_a_setting_steers_the_log_that_it_names():
    settings = {"segment.bytes": "100", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.1"}

    config = topic_config(LogConfig(), settings)

    assert config == LogConfig(
        segment_bytes=100, cleanup_policy=frozenset({"compact", "delete"}), min_cleanable_dirty_ratio=0.1
    )


def test_every_default_is_one_that_could_be_set():
    texts = topic_setting_texts(LogConfig(), {})

    assert topic_setting_texts(LogConfig(), texts) == texts
    assert topic_config(LogConfig(), texts) == LogConfig()


def test_a_setting_without_effect_says_so():
    used = {name for name, setting in TOPIC_SETTINGS.items() if "without effect" not in setting.documentation}

    assert used == {name for name, setting in TOPIC_SETTINGS.items() if setting.is_used}
    assert {"segment.bytes", "retention.ms", "cleanup.policy"} <= used


def test_every_setting_of_the_broker_says_what_it_means():
    assert set(SETTING_TEXTS) == set(broker_settings(BrokerConfig()))


class TestTheBroker:
    def test_settings_are_given_under_kafkas_names(self):
        config = with_settings(
            BrokerConfig(),
            {
                "num.partitions": "4",
                "auto.create.topics.enable": "false",
                "group.max.size": "7",
                "log.retention.ms": "-1",
                "log.cleanup.policy": "compact",
                "log.flush.mode": "interval",
                "producer.id.expiration.ms": "9",
            },
        )

        assert config.num_partitions == 4
        assert config.auto_create_topics_enable is False
        assert config.group.group_max_size == 7
        assert config.log.retention_ms == -1
        assert config.log.cleanup_policy == {"compact"}
        assert config.log.producer_id_expiration_ms == 9
        assert config.log_flush_mode is FlushMode.INTERVAL

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("no.such.setting", "1"),
            ("host", "x"),
            ("port", "1"),
            ("data", "x"),
            ("group", "x"),
            ("log", "x"),
            ("given", "x"),
            ("segment.bytes", "100"),
            ("log.segment.bytes", "-1"),
            ("num.partitions", "0"),
            ("num.partitions", "many"),
            ("group.max.size", "0"),
            ("offsets.topic.num.partitions", "0"),
            ("offsets.topic.segment.bytes", "-5"),
            ("socket.request.max.bytes", "0"),
            ("auto.create.topics.enable", "1"),
            ("log.flush.mode", "sometimes"),
        ],
    )
    def test_what_is_no_setting_or_no_value_is_refused(self, name: str, text: str):
        with pytest.raises(BadSetting, match=name):
            with_settings(BrokerConfig(), {name: text})

    def test_it_knows_which_settings_it_was_given(self):
        settings = broker_settings(with_settings(BrokerConfig(), {"num.partitions": "5"}))

        assert settings["num.partitions"].value == "5"
        assert settings["num.partitions"].said == (
            (ConfigSource.STATIC_BROKER_CONFIG, "num.partitions", "5"),
            (ConfigSource.DEFAULT_CONFIG, "num.partitions", "1"),
        )
        assert settings["broker.id"].said == ((ConfigSource.DEFAULT_CONFIG, "broker.id", "0"),)

    def test_everything_that_it_tells_could_be_given(self):
        settings = broker_settings(BrokerConfig())
        told = {name: s.value for name, s in settings.items() if name != "log.dirs" and s.value is not None}

        config = with_settings(BrokerConfig(), told)

        assert config == BrokerConfig(given=told)
        without = {name for name, s in settings.items() if s.value is None and not name.startswith(("ssl.", "sasl."))}
        assert without == {"log.retention.minutes", "log.retention.ms", "log.roll.ms"}


class TestTimesWithSeveralNames:
    @pytest.mark.parametrize(
        ("given", "retention_ms"),
        [
            ({}, 168 * 3_600_000),
            ({"log.retention.hours": "2"}, 7_200_000),
            ({"log.retention.minutes": "3", "log.retention.hours": "2"}, 180_000),
            ({"log.retention.ms": "4", "log.retention.minutes": "3", "log.retention.hours": "2"}, 4),
            ({"log.retention.ms": "4", "log.retention.hours": "-1"}, 4),
            ({"log.retention.hours": "-5"}, -1),
            ({"log.retention.minutes": "-1", "log.retention.hours": "2"}, -1),
            ({"log.retention.ms": "-1"}, -1),
        ],
    )
    def test_the_finest_counts(self, given: dict[str, str], retention_ms: int):
        for order in (given, dict(reversed(given.items()))):
            assert with_settings(BrokerConfig(), order).log.retention_ms == retention_ms

    @pytest.mark.parametrize(
        ("given", "segment_ms"),
        [({"log.roll.hours": "2"}, 7_200_000), ({"log.roll.hours": "2", "log.roll.ms": "9"}, 9)],
    )
    def test_segments_roll_after_hours_or_milliseconds(self, given: dict[str, str], segment_ms: int):
        assert with_settings(BrokerConfig(), given).log.segment_ms == segment_ms

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("log.retention.hours", "0"),
            ("log.retention.minutes", "0"),
            ("log.retention.ms", "0"),
            ("log.retention.hours", "long"),
            ("log.roll.hours", "0"),
            ("log.roll.hours", "-1"),
            ("log.roll.ms", "0"),
        ],
    )
    def test_no_time_at_all_is_refused(self, name: str, text: str):
        with pytest.raises(BadSetting, match=name):
            with_settings(BrokerConfig(), {name: text})

    def test_who_said_what_is_told_under_every_name(self):
        config = with_settings(BrokerConfig(), {"log.retention.hours": "2", "log.retention.minutes": "3"})
        settings = broker_settings(config)

        assert settings["log.retention.hours"].value == "2"
        assert settings["log.retention.minutes"].value == "3"
        assert settings["log.retention.ms"].value is None
        assert settings["log.retention.ms"].said == (
            (ConfigSource.STATIC_BROKER_CONFIG, "log.retention.minutes", "3"),
            (ConfigSource.STATIC_BROKER_CONFIG, "log.retention.hours", "2"),
            (ConfigSource.DEFAULT_CONFIG, "log.retention.hours", "168"),
        )

    def test_of_a_time_that_nobody_spoke_of_nothing_is_told(self):
        assert broker_settings(BrokerConfig())["log.retention.ms"].said == ()


class TestChanges:
    def test_who_said_it_counts_and_not_when(self):
        config = with_settings(BrokerConfig(), {"message.max.bytes": "1"})
        for own, for_all, value in (
            ({}, {"message.max.bytes": "2"}, 2),
            ({"message.max.bytes": "3"}, {"message.max.bytes": "2"}, 3),
            ({"message.max.bytes": "3"}, {}, 3),
            ({}, {}, 1),
        ):
            config = with_changes(config, own, for_all)
            assert config.log.max_message_bytes == value

    def test_what_is_said_no_more_is_the_default_again(self):
        changes = {"log.retention.ms": "5", "log.cleaner.backoff.ms": "7", "log.cleanup.policy": "compact"}
        changed = with_changes(BrokerConfig(), {}, changes)
        assert (changed.log.retention_ms, changed.log_cleaner_backoff_ms) == (5, 7)
        assert with_changes(changed, {}, {}) == BrokerConfig()

    def test_another_name_of_a_time_counts_again_when_the_change_is_gone(self):
        started = with_settings(BrokerConfig(), {"log.retention.hours": "2"})
        changed = with_changes(started, {"log.retention.ms": "5"}, {})
        assert changed.log.retention_ms == 5
        assert with_changes(changed, {}, {}) == started

    @pytest.mark.parametrize(
        "name", ["num.partitions", "offsets.retention.minutes", "log.retention.hours", "broker.id"]
    )
    def test_what_cannot_be_changed_while_a_broker_runs_is_refused(self, name: str):
        for own, for_all in (({name: "3"}, {}), ({}, {name: "3"})):
            with pytest.raises(BadSetting, match=f"{name} cannot be changed while the broker runs"):
                with_changes(BrokerConfig(), own, for_all)

    def test_what_is_no_setting_is_refused(self):
        with pytest.raises(BadSetting, match=r"no setting no\.such\.setting"):
            with_changes(BrokerConfig(), {"no.such.setting": "3"}, {})
