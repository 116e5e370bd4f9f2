"""The table of states, and that nothing goes past it."""

import pytest

from kohort.errors import IllegalState
from kohort.transaction.metadata import TransactionMetadata
from kohort.transaction.records import TransactionalId
from kohort.transaction.states import VALID_PREVIOUS_STATES, TransactionState

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
DEAD, FENCE = TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE


def prepare(metadata: TransactionMetadata, state: TransactionState) -> None:
    """Whatever leads to that state."""
    if state is EMPTY:
        metadata.prepare_increment_producer_epoch(1, None, 0)
    elif state is ONGOING:
        metadata.prepare_add_partitions((), 0)
    elif state in (PREPARE_COMMIT, PREPARE_ABORT):
        metadata.prepare_abort_or_commit(state, 0)
    elif state is DEAD:
        metadata.prepare_dead()
    elif state is FENCE:
        metadata.prepare_fence_producer_epoch()
    else:
        metadata.prepare_complete(0)


def test_the_table_is_kafkas() -> None:
    assert {
        EMPTY: {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
        ONGOING: {ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT},
        PREPARE_COMMIT: {ONGOING},
        PREPARE_ABORT: {ONGOING, FENCE},
        COMPLETE_COMMIT: {PREPARE_COMMIT},
        COMPLETE_ABORT: {PREPARE_ABORT},
        DEAD: {EMPTY, COMPLETE_ABORT, COMPLETE_COMMIT},
        FENCE: {ONGOING},
    } == VALID_PREVIOUS_STATES


@pytest.mark.parametrize("to", TransactionState)
@pytest.mark.parametrize("state", TransactionState)
def test_an_id_goes_where_the_table_says_and_nowhere_else(state: TransactionState, to: TransactionState) -> None:
    metadata = TransactionMetadata(
        TransactionalId("id"),
        producer_id=1,
        producer_epoch=3,
        txn_timeout_ms=1,
        state=state,
        txn_last_update_timestamp=0,
        txn_start_timestamp=0,
    )
    # What completes a transaction completes it the way it was prepared.
    is_other_way = (state, to) in {(PREPARE_COMMIT, COMPLETE_ABORT), (PREPARE_ABORT, COMPLETE_COMMIT)}
    if state in VALID_PREVIOUS_STATES[to]:
        prepare(metadata, to)
        assert metadata.pending_state is to
        assert metadata.state is state
    elif not is_other_way:
        with pytest.raises(IllegalState):
            prepare(metadata, to)
        assert metadata.pending_state is None


@pytest.mark.parametrize("to", TransactionState)
def test_while_a_change_is_pending_no_other_may_begin(to: TransactionState) -> None:
    metadata = TransactionMetadata(
        TransactionalId("id"), producer_id=1, producer_epoch=3, txn_timeout_ms=1, txn_last_update_timestamp=0
    )
    metadata.prepare_add_partitions((), 0)
    with pytest.raises(IllegalState):
        prepare(metadata, to)
    assert metadata.pending_state is ONGOING
