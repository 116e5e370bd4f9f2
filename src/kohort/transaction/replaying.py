"""A partition of `__transaction_state`, replayed to its end: of each transactional id the last record counts."""

from dataclasses import dataclass, field

from kohort.errors import CorruptLog
from kohort.log.answers import ReadUpTo
from kohort.log.partition import Log
from kohort.records.batch import Record, read_batches
from kohort.records.primitives import Malformed
from kohort.transaction.records import TransactionalId, TransactionValue, decode_key, decode_value


@dataclass(slots=True)
class TransactionLogState:
    """What a partition holds: the ids, how many records were read, and how many of them have an unknown kind of key."""

    transactions: dict[TransactionalId, TransactionValue] = field(default_factory=dict)
    records: int = 0
    unknown_keys: int = 0

    def apply(self, record: Record) -> None:
        """One more record. A value that cannot be read is `Malformed`: without it the id would be in an older state,
        and its transaction might never end."""
        self.records += 1
        if record.key is None:
            raise Malformed("a record of a transaction without a key")
        transactional_id = decode_key(record.key)
        if transactional_id is None:
            self.unknown_keys += 1
        elif record.value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = decode_value(record.value)


def replay_transactions(log: Log, read_size: int) -> TransactionLogState:
    """The transactional ids in a log, read in stretches of about `read_size` bytes; a larger batch is read whole.

    What cannot be read is `CorruptLog`: half of a state is worse than none.
    """
    state = TransactionLogState()
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        fetched = log.read(offset, read_size, min_one=True, up_to=ReadUpTo.LOG_END)
        if fetched.next_offset <= offset:
            raise CorruptLog(f"nothing can be read at offset {offset}, the log ends at {end}", path=log.path)
        for batch in read_batches(fetched.records):
            if not batch.header.is_control:
                for record in batch.records:
                    _apply(state, record, log.path)
        offset = fetched.next_offset
    return state


def _apply(state: TransactionLogState, record: Record, path: str) -> None:
    try:
        state.apply(record)
    except Malformed as error:
        raise CorruptLog(f"the record at offset {record.offset} cannot be read: {error}", path=path) from error
