"""What can go wrong, split by blame: bytes (`CorruptLog`), caller (`ClientError`), disk (`StorageFailed`).

On the wire every refusal is a number (`ErrorCode`, Kafka's); an exception that a client may see knows its own.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class ErrorCode(IntEnum):
    """Kafka's error codes, as far as they are given."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115


class KohortError(Exception):
    """Any failure that kohort foresees; its text is one line for people."""


class CorruptLog(KohortError):
    """Bytes that are not what they claim to be, with the file, the byte position and the reason."""

    def __init__(self, reason: str, *, path: str = "", position: int = 0) -> None:
        super().__init__(reason, path, position)
        self.reason = reason
        self.path = path
        self.position = position

    def __str__(self) -> str:
        where = f"{self.path}, byte {self.position}" if self.path else f"byte {self.position}"
        return f"{where}: {self.reason}"

    def retold(self) -> "CorruptLog":
        """The same damage, never raised: whoever keeps it keeps no bytes in the frames that it came through."""
        return CorruptLog(self.reason, path=self.path, position=self.position)

    def within(self, path: str, offset: int = 0) -> "CorruptLog":
        """The same damage, told from outside: in that file, `offset` bytes further on."""
        return CorruptLog(self.reason, path=path or self.path, position=self.position + offset)


class IllegalState(KohortError):
    """Something that cannot be, unless kohort itself is wrong."""


class ClientError(KohortError):
    """A request that Kafka refuses; subclasses name the refusal."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(ClientError):
    """An offset before the log start or behind what may be read."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptMessage(ClientError):
    """A batch whose checksum or framing is wrong as it arrives."""

    code = ErrorCode.CORRUPT_MESSAGE


class RecordError(NamedTuple):
    """What is wrong with one record of a batch, which is counted from 0 (KIP-467)."""

    batch_index: int
    message: str


class InvalidRecord(ClientError):
    """A batch that is sound in itself but not one that a log accepts."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, message: str, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.record_errors = tuple(record_errors)


class InvalidTimestamp(InvalidRecord):
    """A timestamp that the topic's settings do not allow."""

    code = ErrorCode.INVALID_TIMESTAMP


class RecordTooLarge(ClientError):
    """A batch beyond `max.message.bytes`."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class RecordListTooLarge(ClientError):
    """An append that no segment could hold."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE


class OutOfOrderSequence(ClientError):
    """A batch of an idempotent producer that does not follow the one before."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpoch(ClientError):
    """A producer that a newer one with the same id has fenced."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnState(ClientError):
    """A plain batch of a producer that has a transaction open."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionCoordinatorFenced(ClientError):
    """A marker of a transaction coordinator that is no longer in charge."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class StorageFailed(KohortError):
    """The disk did not do what it was told; nothing more may be acknowledged."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogClosed(StorageFailed):
    """A log that was let go of: somebody has deleted it, or the broker is going down."""
