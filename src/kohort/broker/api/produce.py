"""Produce (0): append batches to logs.

3 batches of format 2, transactional ids (KIP-98) · 5 the log start in the answer · 7 zstd (KIP-110) · 8 what is wrong
with which record (KIP-467) · 9 flexible · 10 who leads instead, which is nobody here (KIP-951) · 11 an error that is
for transactions only · 12 a batch of a transaction makes its partition a part of it (both KIP-890) · 13 topics by their
ids (KIP-516)

Versions 0 to 2 are told of but not served, as Kafka does since 4.0: librdkafka does not compress for a broker that does
not tell of them (KAFKA-18659).

The coordinators' topics are written by the coordinators alone. Kafka lets in whoever calls itself `__admin_client`,
which anybody can.

One broker is its own only replica: acks 1 and -1 both wait until the batch is as safe as the flush mode promises, and
who wants all acknowledgements waits no longer than the request says.
"""

import asyncio
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.leading import UnknownTopicId, leader_epoch, led_log
from kohort.broker.security.permission import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import (
    ClientError,
    CorruptMessage,
    ErrorCode,
    InvalidRecord,
    RecordListTooLarge,
    RecordTooLarge,
    StorageFailed,
)
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_TIMESTAMP, TRANSACTIONAL
from kohort.records.compression import Codec
from kohort.transaction.records import TransactionalId
from kohort.transaction.requests import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.log.partition import Log

_ALL_ACKS = -1
_ACKS = (_ALL_ACKS, 0, 1)
_ZSTD_FROM = 7
_JOINS_FROM = 12
_IDS_FROM = 13
_STORAGE_ERROR_FROM = 4
_NO_OFFSET = -1

_MAGIC_AT = 16
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21
_CODEC_MASK = 0x07
_PRODUCER = struct.Struct(">qh")
_PRODUCER_AT = 43


class RequiredAcks(ClientError):
    """Another number of acknowledgements than all, none or one."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class Internal(ClientError):
    """A topic that is the coordinators' own."""

    code = ErrorCode.INVALID_TOPIC


class UnsupportedCompression(ClientError):
    """A codec that this version of the request has not."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


_KNOWN_REFUSALS = (CorruptMessage, RecordTooLarge, RecordListTooLarge)
_TRY_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors of coordinators, which mean nothing to who produces."""


class _Appending:
    """One request: what becomes of each partition, and who is still waited for."""

    def __init__(self, broker: "Broker", call: "Call") -> None:
        self._broker = broker
        self._call = call
        self._topics: list[dict[str, Any]] = []
        self._written: list[tuple[dict[str, Any], Log, int]] = []
        self._unsafe: dict[int, dict[str, Any]] = {}
        """What is to be told of appends that nobody knows yet to be safe."""
        self._timeout: asyncio.TimerHandle | None = None
        self._left: Iterator[tuple[str | None, Any, list[dict[str, Any]]]] = iter(())
        """What is not appended yet: a partition's topic and records, and where its answer goes."""
        self._refused: Mapping[TopicPartition, ErrorCode] = {}
        self._failed: ErrorCode | None = None

    def run(self) -> None:
        """What a batch says of itself counts, whatever its request says (CVE-2018-17196)."""
        call, request = self._call, self._call.request
        transactional = {
            TopicPartition(name, data.index): data.records
            for name, _, partitions in self._named_topics()
            for data in partitions
            if name is not None and _attributes(data.records) & TRANSACTIONAL
        }
        transactional_id = request.transactional_id
        if transactional and (transactional_id is None or not call.may(WRITE_TRANSACTIONAL_ID, transactional_id)):
            self._append_all(dict.fromkeys(self._partitions(), WRITE_TRANSACTIONAL_ID.refusal))
            return
        refused = {} if call.authorizer is None else self._not_for_them()
        if refused:
            transactional = {found: records for found, records in transactional.items() if found not in refused}
        if transactional and call.version >= _JOINS_FROM:
            self._join_transaction(transactional_id, transactional, refused)
        else:
            self._append_all(refused)

    def _not_for_them(self) -> dict[TopicPartition, ErrorCode]:
        """Partitions that who asks may not write to, whether or not they are there."""
        topics = self._call.refused(WRITE_TOPIC, (name for name, _, _ in self._named_topics()))
        return {partition: WRITE_TOPIC.refusal for partition in self._partitions() if partition.topic in topics}

    def _named_topics(self) -> Iterator[tuple[str | None, dict[str, Any], Sequence[Any]]]:
        """Each topic: its name, if there is one with its id, what it is called in the request, and its partitions."""
        for topic in self._call.request.topic_data:
            if self._call.version < _IDS_FROM:
                yield topic.name, {"name": topic.name}, topic.partition_data
            else:
                name = self._broker.topics.name_of(topic.topic_id)
                yield name, {"topic_id": topic.topic_id}, topic.partition_data

    def _partitions(self) -> Iterator[TopicPartition]:
        for name, _, partitions in self._named_topics():
            if name is not None:
                yield from (TopicPartition(name, data.index) for data in partitions)

    def _join_transaction(
        self,
        transactional_id: str,
        records: Mapping[TopicPartition, bytes],
        refused: Mapping[TopicPartition, ErrorCode],
    ) -> None:
        """The coordinator hears of the partitions before anything is written to them (KIP-890)."""
        known = tuple(partition for partition in records if self._broker.topics.log(*partition) is not None)
        producers = {producer for partition in known if (producer := _producer(records[partition])) is not None}
        if len(producers) != 1:
            self._append_all({**refused, **dict.fromkeys(known, ErrorCode.INVALID_PRODUCER_ID_MAPPING)})
            return
        ((producer_id, producer_epoch),) = producers

        def joined(error: ErrorCode) -> None:
            failed = () if error is ErrorCode.NONE else known
            told = ErrorCode.NOT_ENOUGH_REPLICAS if error in _TRY_AGAIN else error
            self._append_all({**refused, **dict.fromkeys(failed, told)})

        self._broker.transactions.handle_add_partitions_to_txn(
            AddPartitionsToTxnRequest(TransactionalId(transactional_id), producer_id, producer_epoch, known), joined
        )

    def _append_all(self, refused: Mapping[TopicPartition, ErrorCode]) -> None:
        """Append what is not refused already, and answer when it is safe."""
        left: list[tuple[str | None, Any, list[dict[str, Any]]]] = []
        for name, called, partitions in self._named_topics():
            answers: list[dict[str, Any]] = []
            self._topics.append({**called, "partition_responses": answers})
            left += [(name, data, answers) for data in partitions]
        self._left, self._refused = iter(left), refused
        self._append_some()

    def _append_some(self) -> None:
        """Each batch may take its time to be opened; after some of them it is others' turn."""
        until = self._broker.turns.end_of_one()
        for name, data, answers in self._left:
            answers.append(self._append(name, data, self._refused))
            if perf_counter() > until:
                self._broker.turns.wait(self._append_some, is_heavy=True)
                return
        self._finish_appending()

    def _finish_appending(self) -> None:
        request = self._call.request
        if request.acks == 0:
            self._say_nothing()
        elif not self._written:
            self._answer()
        self._unsafe = {number: answer for number, (answer, _, _) in enumerate(self._written)}
        for number, (_, log, next_offset) in enumerate(self._written):
            self._broker.durable.then(log, next_offset, partial(self._settle, number))
        self._call.has_its_place = True
        if self._unsafe and request.acks == _ALL_ACKS:
            self._timeout = self._broker.loop.call_later(max(0, request.timeout) / 1000, self._give_up)

    def _append(self, name: str | None, data: Any, refused: Mapping[TopicPartition, ErrorCode]) -> dict[str, Any]:
        answer = {
            "index": data.index,
            "error_code": ErrorCode.NONE,
            "base_offset": _NO_OFFSET,
            "log_append_time": NO_TIMESTAMP,
            "log_start_offset": _NO_OFFSET,
            "record_errors": (),
            "error_message": None,
        }
        log = None
        try:
            if name is None:
                raise UnknownTopicId("there is no topic with this id")
            partition = TopicPartition(name, data.index)
            if partition in refused:
                self._refuse(answer, refused[partition])
                return answer
            log = led_log(self._broker.topics, partition)
            self._check(name, data.records)
            appended = log.append(data.records or b"", leader_epoch=leader_epoch(log))
        except (ClientError, StorageFailed) as refusal:
            self._refuse(answer, refusal.code)
            if isinstance(refusal, InvalidRecord):
                answer["error_message"] = str(refusal)
                answer["record_errors"] = [
                    {"batch_index": error.batch_index, "batch_index_error_message": error.message}
                    for error in refusal.record_errors
                ]
            if log is not None and isinstance(refusal, ClientError) and not isinstance(refusal, _KNOWN_REFUSALS):
                answer["log_start_offset"] = log.log_start_offset
            return answer
        answer["base_offset"] = appended.first_offset
        answer["log_append_time"] = appended.log_append_time
        answer["log_start_offset"] = appended.log_start_offset
        self._written.append((answer, log, appended.next_offset))
        return answer

    def _check(self, topic: str, records: bytes | None) -> None:
        if self._call.version < _ZSTD_FROM and _attributes(records) & _CODEC_MASK == Codec.ZSTD:
            raise UnsupportedCompression(f"zstd in version {self._call.version}")
        if self._call.request.acks not in _ACKS:
            raise RequiredAcks(f"{self._call.request.acks} acknowledgements")
        if topic in INTERNAL_TOPICS:
            raise Internal(f"{topic} is internal")

    def _refuse(self, answer: dict[str, Any], error: ErrorCode) -> None:
        if error is ErrorCode.KAFKA_STORAGE_ERROR and self._call.version < _STORAGE_ERROR_FROM:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer["error_code"] = self._failed = error

    def _settle(self, number: int, error: ErrorCode) -> None:
        """An append is safe, or will never be. If that comes too late it has been told otherwise already."""
        answer = self._unsafe.pop(number, None)
        if answer is None:
            return
        if error is not ErrorCode.NONE:
            self._refuse(answer, error)
            answer["base_offset"] = answer["log_start_offset"] = _NO_OFFSET
            answer["log_append_time"] = NO_TIMESTAMP
        if not self._unsafe and self._call.request.acks != 0:
            self._answer()

    def _give_up(self) -> None:
        """Longer than the producer wants to wait. What was written stays, and may become safe all the same."""
        for answer in self._unsafe.values():
            self._refuse(answer, ErrorCode.REQUEST_TIMED_OUT)
        self._unsafe.clear()
        self._answer()

    def _answer(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        self._call.answer({"responses": self._topics})

    def _say_nothing(self) -> None:
        """A producer that wants no answer learns of a failure by losing its connection."""
        if self._failed is None:
            self._call.answer_nothing()
        else:
            self._call.hang_up(f"Produce with acks 0 failed: {self._failed.name}")


def _producer(records: bytes) -> tuple[int, int] | None:
    """Whose batch it is: id and epoch."""
    if len(records) < _PRODUCER_AT + _PRODUCER.size:
        return None
    producer_id, epoch = _PRODUCER.unpack_from(records, _PRODUCER_AT)
    return producer_id, epoch


def _attributes(records: bytes | None) -> int:
    """What the first batch says of itself; 0 if there is none of format 2."""
    if records is None or len(records) < _ATTRIBUTES_AT + _ATTRIBUTES.size or records[_MAGIC_AT] != 2:
        return 0
    attributes: int = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)[0]
    return attributes


@api(0, 3, 13, told_from=0, permissions=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID))
def produce(broker: "Broker", call: "Call") -> None:
    _Appending(broker, call).run()
