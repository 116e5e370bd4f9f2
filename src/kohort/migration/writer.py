"""Sends batches to a partition, each once, whatever is lost on the way and whoever is killed.

An answer that never came says nothing: the batch may be in the log, or come into it later, even after the process that
sent it was killed and another one has begun. So every batch bears the same producer id, a number of our own, and as its
sequence the very offset that it is to get. Brokers take a batch of a producer only if its sequence follows the last
one, so nothing is taken but what belongs at the end of the log; what is there already is answered as if it were new.
The partition itself knows how far the copy is, and nobody else has to.

Brokers forget producers, and by the times of their records: one whose records are older than a day may be forgotten
when a broker starts again. Of a producer that it does not know it takes any sequence. So one batch is under way at a
time, and before it is sent again it is looked for.
"""

from typing import Any, NamedTuple

from kohort.admin.cluster import Cluster
from kohort.admin.messages import PRODUCE
from kohort.admin.offsets import log_offsets_of
from kohort.admin.refusals import in_words
from kohort.errors import ErrorCode
from kohort.log.cluster import LATEST, PASSING, TopicPartition
from kohort.migration.packing import Outgoing
from kohort.migration.reading import Refused

_ALL_ACKS = -1
_TIMEOUT_MS = 30_000
_NO_OFFSET = -1
_LONGEST_REASON = 200

_DUPLICATE_SEQUENCE_NUMBER = 46
_PASSING = {
    *PASSING,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    _DUPLICATE_SEQUENCE_NUMBER,
}
"""Refusals after which it helps to look where the log ends, and to go on from there."""


class _Failure(NamedTuple):
    """Why a batch may not be in the log."""

    reason: str
    passes: bool


def _reason(told: Any) -> str:
    """A refusal, with what the broker says of the first record that it did not like."""
    messages = [told.error_message, *(one.batch_index_error_message for one in told.record_errors or ())]
    words, said = in_words(told.error_code), next((message for message in reversed(messages) if message), None)
    return f"{words}: {said[:_LONGEST_REASON]}" if said else words


class Writer:
    """Takes batches in the order of their offsets."""

    def __init__(self, cluster: Cluster, where: TopicPartition) -> None:
        self._cluster = cluster
        self._where = where

    def put(self, batch: Outgoing) -> None:
        """The batch is in the log, where it belongs, when this returns; `Refused` if it cannot be."""
        self._cluster.run(self._put(batch))

    async def _put(self, batch: Outgoing) -> None:
        deadline: float | None = None
        topic, number = self._where
        while (failure := await self._produce(batch)) is not None:
            if not failure.passes:
                raise Refused(failure.reason)
            deadline = deadline or self._cluster.deadline()
            if self._cluster.now() > deadline:
                raise self._cluster.failure(f"{topic}-{number}: {failure.reason}")
            await self._cluster.pause()
            await self._cluster.look_again()
            if await self._log_end() >= batch.next_offset:
                return

    async def _log_end(self) -> int:
        """As far as somebody tells it."""
        from aiokafka.errors import KafkaConnectionError, RequestTimedOutError

        try:
            told = await log_offsets_of(self._cluster, [self._where], LATEST)
        except (KafkaConnectionError, RequestTimedOutError):
            return _NO_OFFSET
        return told.found.get(self._where, _NO_OFFSET)

    async def _produce(self, batch: Outgoing) -> _Failure | None:
        """None if it is in the log, where it belongs."""
        from aiokafka.errors import KafkaConnectionError, NodeNotReadyError, RequestTimedOutError

        topic, number = self._where
        leader = self._cluster.leader(topic, number)
        if leader is None:
            return _Failure("has no leader", passes=True)
        try:
            answer = await self._cluster.ask(
                leader,
                PRODUCE,
                acks=_ALL_ACKS,
                timeout=_TIMEOUT_MS,
                topic_data=[{"name": topic, "partition_data": [{"index": number, "records": batch.data}]}],
            )
        except (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError):
            return _Failure(f"broker {leader} does not answer", passes=True)
        ((told,),) = (one.partition_responses for one in answer.responses)
        if told.error_code:
            return _Failure(_reason(told), passes=told.error_code in _PASSING)
        if told.base_offset not in (batch.first_offset, _NO_OFFSET):
            return _Failure(f"somebody else writes to it, or wrote at offset {batch.first_offset}", passes=False)
        return None
