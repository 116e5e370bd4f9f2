"""Every setting, under its Kafka name and with its Kafka default."""

from dataclasses import dataclass
from enum import StrEnum

LONGEST_MS = (1 << 63) - 1
"""A time that never passes."""


class FlushMode(StrEnum):
    """When appended bytes are brought to the disk (`log.flush.mode`, ours alone)."""

    ALWAYS = "always"
    INTERVAL = "interval"
    OS = "os"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one topic's partitions; field names are Kafka's with underscores."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4096
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    max_message_bytes: int = 1_048_588
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    file_delete_delay_ms: int = 60_000
    message_timestamp_type: str = "CreateTime"
    message_timestamp_difference_max_ms: int = LONGEST_MS
    message_timestamp_before_max_ms: int = LONGEST_MS
    message_timestamp_after_max_ms: int = LONGEST_MS
    producer_id_expiration_ms: int = 604_800_000

    @property
    def max_age_ms(self) -> int:
        """How old a record may be when it comes. The newer setting counts if it says anything (KIP-937)."""
        before = self.message_timestamp_before_max_ms
        return self.message_timestamp_difference_max_ms if before == LONGEST_MS else before

    @property
    def max_lead_ms(self) -> int:
        """How far a record's time may be ahead of ours."""
        after = self.message_timestamp_after_max_ms
        return self.message_timestamp_difference_max_ms if after == LONGEST_MS else after


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The settings of the group coordinator; field names are Kafka's with underscores."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_max_bytes: int = 67_108_864
    group_coordinator_max_bytes: int = 268_435_456
    inter_broker_protocol_version: str = "2.6"
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_load_buffer_size: int = 5_242_880
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: int = 0
    offsets_topic_num_partitions: int = 50

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """The settings of the transaction coordinator; field names are Kafka's with underscores."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_max_timeout_ms: int = 900_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_load_buffer_size: int = 5_242_880
    transaction_state_log_num_partitions: int = 50
    transactional_id_expiration_ms: int = 604_800_000
