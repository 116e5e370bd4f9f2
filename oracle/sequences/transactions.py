"""The APIs of the transaction coordinator."""

from oracle.apis import Api
from oracle.sequences import for_versions, sequence
from oracle.sequences.txn_offset_commit import Producer
from oracle.talk import Talk


@for_versions(0, 1, 2, 3)
def init_producer_id(talk: Talk, version: int) -> None:
    producer = Producer(talk)
    producer.init(version)
    producer.init(version)
    producer.init(version, transactional_id="")
    producer.init(version, transaction_timeout=0)
    producer.init(version, transaction_timeout=-1)
    producer.init(version, transaction_timeout=600_001)
    producer.caller.ask(Api.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout=0)


@sequence
def init_producer_id_of_one_that_goes_on(talk: Talk) -> None:
    producer = Producer(talk)
    producer.init(3)
    first = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    producer.init(3, **first)
    producer.init(3, **first)
    producer.init(3, producer_id=producer.producer_id, producer_epoch=producer.epoch)
    producer.init(3, **first)
    producer.init(3, producer_id=producer.producer_id, producer_epoch=99)
    producer.init(3, producer_id=-1, producer_epoch=3)
    producer.init(3, producer_id=producer.producer_id, producer_epoch=-1)
    producer.init(3, producer_id=987_654, producer_epoch=0)
    other = Producer(talk, "q")
    other.init(3, producer_id=987_654, producer_epoch=3)
    other.init(3, transactional_id=None, producer_id=987_654, producer_epoch=3)


@for_versions(0, 1)
def add_partitions(talk: Talk, version: int) -> None:
    producer = Producer(talk)
    producer.add_partitions(0, version=version)
    producer.init()
    producer.add_partitions(0, 1, version=version)
    producer.add_partitions(0, version=version)
    producer.add_partitions(0, 7, version=version)
    producer.add_partitions(0, version=version, topic="no such topic")
    producer.add_partitions(0, version=version, v3_and_below_producer_epoch=5)
    producer.add_partitions(0, version=version, v3_and_below_producer_id=987_654)
    producer.add_partitions(0, version=version, v3_and_below_transactional_id="")
    producer.add_partitions(0, version=version, v3_and_below_transactional_id="nobody")
    producer.add_partitions(version=version)
    producer.end(commit=False)
    producer.until_ended()


@for_versions(0, 1)
def add_offsets(talk: Talk, version: int) -> None:
    producer = Producer(talk)
    producer.add_offsets(version)
    producer.init()
    producer.add_offsets(version, producer_epoch=5)
    producer.add_offsets(version, producer_id=987_654)
    producer.add_offsets(version, transactional_id="")
    producer.add_offsets(version, transactional_id="nobody")
    producer.add_offsets(version, group_id="")
    producer.add_offsets(version)
    producer.end(commit=True)
    producer.until_ended()


@for_versions(0, 1)
def end_txn(talk: Talk, version: int) -> None:
    producer = Producer(talk)
    producer.end(version, commit=True)
    producer.init()
    producer.end(version, commit=True)
    producer.end(version, commit=False)
    producer.add_partitions(0)
    producer.end(version, commit=True, producer_epoch=5)
    producer.end(version, commit=True, producer_id=987_654)
    producer.end(version, commit=True, transactional_id="")
    producer.end(version, commit=True, transactional_id="nobody")
    producer.end(version, commit=True)
    producer.caller.ask_until(
        lambda answer: answer.error_code.value != 51,
        Api.END_TXN,
        version,
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    producer.end(version, commit=False)
    producer.add_partitions(1)
    producer.end(version, commit=False)
    producer.until_ended()


@sequence
def transaction_is_fenced_by_a_new_producer(talk: Talk) -> None:
    old, new = Producer(talk), Producer(talk)
    old.init()
    old.add_partitions(0)
    new.init()
    new.until_ended()
    old.add_partitions(1)
    old.end(commit=True)
    new.add_partitions(1)
    new.end(commit=True)
    new.until_ended()


@sequence
def transaction_is_aborted_when_it_takes_too_long(talk: Talk) -> None:
    producer = Producer(talk, timeout=100)
    producer.init()
    producer.add_partitions(0)
    talk.wait(900)
    producer.add_partitions(1)
    producer.end(commit=True)
    producer.until_ended()
