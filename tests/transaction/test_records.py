"""Records of `__transaction_state`: their bytes, and what cannot be read."""

import pytest

from kohort.errors import IllegalState, RecordTooLarge
from kohort.log.names import TopicPartition
from kohort.records.batch import read_batches
from kohort.records.primitives import Malformed
from kohort.transaction.records import (
    TransactionalId,
    TransactionValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    tombstones,
    transaction_batch,
)
from kohort.transaction.states import TransactionState

PARTITIONS = (TopicPartition("t1", 0), TopicPartition("t2", 7), TopicPartition("t1", 2))
BYTES = {
    TransactionState.EMPTY: "00",
    TransactionState.ONGOING: "01",
    TransactionState.PREPARE_COMMIT: "02",
    TransactionState.PREPARE_ABORT: "03",
    TransactionState.COMPLETE_COMMIT: "04",
    TransactionState.COMPLETE_ABORT: "05",
    TransactionState.DEAD: "06",
    TransactionState.PREPARE_EPOCH_FENCE: "07",
}


def test_a_key_is_a_version_and_the_id() -> None:
    key = encode_key(TransactionalId("tx-é"))
    assert key == bytes.fromhex("0000 0005") + "tx-é".encode()
    assert decode_key(key) == "tx-é"


def test_a_value_has_kafkas_fields_in_kafkas_order() -> None:
    """TransactionLogTest testTransactionMetadataParsing"""
    value = TransactionValue(1334, 3, 60_000, TransactionState.ONGOING, PARTITIONS, 258, 257)
    assert encode_value(value) == bytes.fromhex(
        "0000"  # version
        "0000000000000536"  # producer id
        "0003"  # producer epoch
        "0000ea60"  # timeout
        "01"  # state
        "00000002"  # topics
        "0002 7431 00000002 00000000 00000002"
        "0002 7432 00000001 00000007"
        "0000000000000102"  # last update
        "0000000000000101"  # start
    )


def test_without_a_transaction_the_partitions_are_null() -> None:
    value = TransactionValue(0, 0, 1, TransactionState.EMPTY, (), 5)
    encoded = encode_value(value)
    assert encoded == bytes.fromhex("0000 0000000000000000 0000 00000001 00 ffffffff 0000000000000005 ffffffffffffffff")
    assert decode_value(encoded) == value


@pytest.mark.parametrize("state", TransactionState)
def test_what_is_written_can_be_read(state: TransactionState) -> None:
    """TransactionLogTest shouldReadWriteMessages"""
    partitions = () if state is TransactionState.EMPTY else (PARTITIONS[0], PARTITIONS[2], PARTITIONS[1])
    value = TransactionValue(5, 32_767, 900_000, state, partitions, 1_600_000_000_000, 1_599_999_999_999)
    encoded = encode_value(value)
    assert encoded[16:17].hex() == BYTES[state]
    assert decode_value(encoded) == value


def test_a_complete_transaction_has_a_list_of_no_partitions() -> None:
    encoded = encode_value(TransactionValue(5, 0, 1, TransactionState.COMPLETE_ABORT, (), 2, 1))
    assert encoded[17:21] == bytes(4)


def test_an_empty_transaction_with_partitions_cannot_be_written() -> None:
    """TransactionLogTest shouldThrowExceptionWriteInvalidTxn"""
    with pytest.raises(IllegalState):
        encode_value(TransactionValue(23423, 0, 1, TransactionState.EMPTY, PARTITIONS, 0))


def test_a_batch_is_a_plain_one() -> None:
    value = TransactionValue(5, 0, 1, TransactionState.ONGOING, PARTITIONS, 2, 1)
    (batch,) = read_batches(transaction_batch(TransactionalId("id"), value, 77))
    header, (record,) = batch.header, batch.records
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0, -1, -1, -1)
    assert (record.timestamp, record.key) == (77, encode_key(TransactionalId("id")))
    assert decode_value(record.value or b"")._replace(topic_partitions=PARTITIONS) == value


def test_a_tombstone_is_a_key_without_a_value() -> None:
    """TransactionLogTest testTransactionMetadataTombstoneParsing"""
    (batch,) = read_batches(tombstones([TransactionalId("a"), TransactionalId("b")], 9))
    assert [(record.key, record.value, record.timestamp) for record in batch.records] == [
        (encode_key(TransactionalId("a")), None, 9),
        (encode_key(TransactionalId("b")), None, 9),
    ]


def test_an_id_or_a_topic_that_is_too_long_does_not_fit() -> None:
    value = TransactionValue(5, 0, 1, TransactionState.ONGOING, (TopicPartition("t" * 32_768, 0),), 2, 1)
    with pytest.raises(RecordTooLarge):
        transaction_batch(TransactionalId("id"), value, 0)
    with pytest.raises(RecordTooLarge):
        transaction_batch(TransactionalId("i" * 32_768), value._replace(topic_partitions=()), 0)


def test_a_key_of_a_newer_version_is_nobodys() -> None:
    """TransactionLogTest testReadTxnRecordKeyCanReadUnknownMessage"""
    assert decode_key(b"\x7f\xff\x00\x01x") is None


def test_a_value_of_newer_brokers_is_read() -> None:
    """TransactionLogTest testDeserializeFutureTransactionLogValue"""
    encoded = bytes.fromhex(
        "0001 0000000000000005 0002 0000ea60 02"
        "02 03 7431 03 00000000 00000002 00"  # one topic "t1" with partitions 0 and 2, no tags
        "0000000000000102 0000000000000101"
        "02 00 08 0000000000000004 63 01 ff"  # the producer id before, and a tag that nobody knows
    )
    partitions = (TopicPartition("t1", 0), TopicPartition("t1", 2))
    assert decode_value(encoded) == TransactionValue(
        5, 2, 60_000, TransactionState.PREPARE_COMMIT, partitions, 258, 257
    )


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        "0002 0000000000000005 0002 0000ea60 02 00000000 0000000000000102 0000000000000101",
        "0000 0000000000000005 0002 0000ea60 08 00000000 0000000000000102 0000000000000101",
        "0000 0000000000000005 0002 0000ea60 02 00000001 0000000000000102 0000000000000101",
        "0000 0000000000000005 0002 0000ea60 02 7fffffff",
        "0000 0000000000000005 0002 0000ea60 02 00000001 0001 74 7fffffff",
    ],
)
def test_other_values_cannot_be_read(encoded: str) -> None:
    with pytest.raises(Malformed):
        decode_value(bytes.fromhex(encoded))
