"""What a transaction coordinator is asked and what it answers, as plain values."""

from collections.abc import Callable
from typing import NamedTuple

from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kohort.transaction.records import TransactionalId


class ProducerIdAndEpoch(NamedTuple):
    """A producer as it knows itself."""

    producer_id: int
    producer_epoch: int


class InitProducerIdRequest(NamedTuple):
    """A producer that begins, or one that goes on after an error and says who it is (KIP-360).

    Without a transactional id the timeout means nothing.
    """

    transactional_id: TransactionalId | None
    transaction_timeout_ms: int
    expected: ProducerIdAndEpoch | None = None


class InitProducerIdResult(NamedTuple):
    """Who the producer is from now on."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class AddPartitionsToTxnRequest(NamedTuple):
    """Partitions that a transaction is about to write to.

    AddOffsetsToTxn is the same with the partition of `__consumer_offsets` that the group belongs to.
    """

    transactional_id: TransactionalId | None
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


class EndTxnRequest(NamedTuple):
    """The end of a transaction, one way or the other."""

    transactional_id: TransactionalId | None
    producer_id: int
    producer_epoch: int
    is_commit: bool


InitProducerIdCallback = Callable[[InitProducerIdResult], None]
ErrorCallback = Callable[[ErrorCode], None]
