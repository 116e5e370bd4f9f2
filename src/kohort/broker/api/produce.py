"""Produce (0): append batches to logs.

3 batches of format 2, transactional ids (KIP-98) · 5 the log start in the answer · 7 zstd (KIP-110) · 8 what is wrong
with which record (KIP-467) · 9 flexible · 10 who leads instead, which is nobody here (KIP-951) · 11 an error that is
for transactions only (KIP-890)

Versions 0 to 2 are told of but not served, as Kafka does since 4.0: librdkafka does not compress for a broker that does
not tell of them (KAFKA-18659).

One broker is its own only replica: acks 1 and -1 both wait until the batch is as safe as the flush mode promises.
"""

import struct
from functools import partial
from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.leading import leader_epoch, led_log
from kohort.broker.topics import INTERNAL_TOPICS
from kohort.errors import (
    ClientError,
    CorruptMessage,
    ErrorCode,
    InvalidRecord,
    InvalidTimestamp,
    RecordListTooLarge,
    RecordTooLarge,
    StorageFailed,
)
from kohort.log.names import TopicPartition
from kohort.records.batch import NO_TIMESTAMP, TRANSACTIONAL
from kohort.records.compression import Codec

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.log.partition import Log

_ADMIN_CLIENT = "__admin_client"
_ACKS = (-1, 0, 1)
_ZSTD_FROM = 7
_STORAGE_ERROR_FROM = 4
_NO_OFFSET = -1

_MAGIC_AT = 16
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = 21
_CODEC_MASK = 0x07


class RequiredAcks(ClientError):
    """Another number of acknowledgements than all, none or one."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class Internal(ClientError):
    """A topic that is the coordinators' own."""

    code = ErrorCode.INVALID_TOPIC


class UnsupportedCompression(ClientError):
    """A codec that this version of the request has not."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class NoTransactionalId(ClientError):
    """A batch of a transaction from a producer that does not say of which."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


_KNOWN_REFUSALS = (CorruptMessage, RecordTooLarge, RecordListTooLarge)
_INVALID = (InvalidRecord, InvalidTimestamp)


class _Appending:
    """One request: what becomes of each partition, and who is still waited for."""

    def __init__(self, broker: "Broker", call: "Call") -> None:
        self._broker = broker
        self._call = call
        self._topics: list[dict[str, Any]] = []
        self._written: list[tuple[dict[str, Any], Log, int]] = []
        self._waiting = 0
        self._failed: ErrorCode | None = None

    def run(self) -> None:
        request = self._call.request
        is_nameless = request.transactional_id is None and any(
            _attributes(data.records) & TRANSACTIONAL for topic in request.topic_data for data in topic.partition_data
        )
        for topic in request.topic_data:
            answers = [self._append(topic.name, data, is_nameless=is_nameless) for data in topic.partition_data]
            self._topics.append({"name": topic.name, "partition_responses": answers})
        self._waiting = len(self._written)
        for answer, log, next_offset in self._written:
            self._broker.durable.then(log, next_offset, partial(self._settle, answer))
        if request.acks == 0:
            self._say_nothing()
        elif not self._written:
            self._answer()

    def _append(self, topic: str, data: Any, *, is_nameless: bool) -> dict[str, Any]:
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
            if is_nameless:
                raise NoTransactionalId("a transactional batch without a transactional id")
            log = led_log(self._broker.topics, TopicPartition(topic, data.index))
            self._check(topic, data.records)
            appended = log.append(data.records or b"", leader_epoch=leader_epoch(log))
        except (ClientError, StorageFailed) as refusal:
            self._refuse(answer, refusal.code)
            if isinstance(refusal, _INVALID):
                answer["error_message"] = str(refusal)
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
        if topic in INTERNAL_TOPICS and self._call.client_id != _ADMIN_CLIENT:
            raise Internal(f"{topic} is internal")

    def _refuse(self, answer: dict[str, Any], error: ErrorCode) -> None:
        if error is ErrorCode.KAFKA_STORAGE_ERROR and self._call.version < _STORAGE_ERROR_FROM:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer["error_code"] = self._failed = error

    def _settle(self, answer: dict[str, Any], error: ErrorCode) -> None:
        """An append is safe, or will never be."""
        if error is not ErrorCode.NONE:
            self._refuse(answer, error)
            answer["base_offset"] = answer["log_start_offset"] = _NO_OFFSET
            answer["log_append_time"] = NO_TIMESTAMP
        self._waiting -= 1
        if self._waiting == 0 and self._call.request.acks != 0:
            self._answer()

    def _answer(self) -> None:
        self._call.answer({"responses": self._topics})

    def _say_nothing(self) -> None:
        """A producer that wants no answer learns of a failure by losing its connection."""
        if self._failed is None:
            self._call.answer_nothing()
        else:
            self._call.hang_up(f"Produce with acks 0 failed: {self._failed.name}")


def _attributes(records: bytes | None) -> int:
    """What the first batch says of itself; 0 if there is none of format 2."""
    if records is None or len(records) < _ATTRIBUTES_AT + _ATTRIBUTES.size or records[_MAGIC_AT] != 2:
        return 0
    attributes: int = _ATTRIBUTES.unpack_from(records, _ATTRIBUTES_AT)[0]
    return attributes


@api(0, 3, 11, told_from=0)
def produce(broker: "Broker", call: "Call") -> None:
    _Appending(broker, call).run()
