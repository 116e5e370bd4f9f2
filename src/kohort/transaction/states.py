"""The life of a transactional id, from one transaction to the next.

    Empty ──▶ Ongoing ──┬──▶ PrepareCommit ──▶ CompleteCommit ──┐
      ▲        ▲   │    └──▶ PrepareAbort  ──▶ CompleteAbort  ──┤
      │        │   └───▶ PrepareEpochFence ──▶ PrepareAbort     │         from Empty and Complete* to Dead
      └────────┴────────────────────────────────────────────────┘

An id is Empty when a producer has been given its epoch and has not begun anything. The first partition begins a
transaction: Ongoing. With PrepareCommit or PrepareAbort in the log its end is decided and nothing can undo that; the
markers are written then, as often as it takes, and Complete* says that all of them stand. PrepareEpochFence is never
written: it is the moment in which a producer is fenced before its transaction is aborted for it. Dead is an id that
nobody has used for long and whose tombstone is on the way.

The table below is the whole truth about transitions: `TransactionMetadata` obeys it.
"""

from enum import StrEnum


class TransactionState(StrEnum):
    """Where a transactional id is in its life; the values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


IDLE_STATES = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is under way: the next one may begin, the producer may get another epoch, the id may expire."""

PREPARED_STATES = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The end is decided and the markers are being written."""

VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: IDLE_STATES,
    TransactionState.ONGOING: IDLE_STATES | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE}),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: IDLE_STATES,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
}
"""For each state, the states that a transactional id may come from."""
