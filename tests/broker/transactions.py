"""A producer with a transactional id in few words, over the wire."""

from typing import Any

from kohort.errors import ErrorCode
from tests.broker.data_plane import INIT_PRODUCER_ID, batch
from tests.broker.wire_client import WireClient

FIND_COORDINATOR, END_TXN = 10, 26
ID = "transfers"


def begin(client: WireClient) -> Any:
    client.ask(FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[ID])
    return client.ask(INIT_PRODUCER_ID, 4, transactional_id=ID, transaction_timeout=60_000)


def end(client: WireClient, producer: Any, *, committed: bool = True, version: int = 4) -> ErrorCode:
    answer = client.ask(
        END_TXN,
        version,
        transactional_id=ID,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    return answer.error_code


def within(producer: Any, text: str) -> bytes:
    return batch(text, producer=producer.producer_id, epoch=producer.producer_epoch, sequence=0, transactional=True)
