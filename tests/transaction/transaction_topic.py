"""`__transaction_state` for a coordinator under test: real logs on a disk in memory, which can be told to misbehave."""

from typing import Any

from kohort.errors import KohortError
from kohort.transaction.replaying import replay_transactions
from tests.group.offsets_topic import OffsetsTopic


class TransactionTopic(OffsetsTopic):
    """A `TransactionLog`; how it is told to misbehave stands in `OffsetsTopic`."""

    def load(self, partition: int, done: Any) -> None:
        def finish() -> None:
            if self._load_failure is not None:
                done(self._load_failure)
                return
            try:
                state = replay_transactions(self.log(partition), self._read_size)
            except KohortError as error:
                done(error)
                return
            done(state)

        if self._is_holding_loads:
            self._held_loads.append(finish)
        else:
            finish()
