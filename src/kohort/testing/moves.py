"""Coordinators that go away and come back, as they do when the leader of their partition changes."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from kohort.errors import ErrorCode
from kohort.group.placement import partition_for
from kohort.testing.controlled import ControlledBroker
from kohort.testing.faults import Fault, Faults, fail_with
from kohort.testing.refusals import NotPossible

T = TypeVar("T")

_GROUP, _TRANSACTION = 0, 1
_FIND_COORDINATOR = 10


class CallBroker(Protocol):
    """Does something with the broker in its own thread."""

    def __call__(self, action: Callable[[ControlledBroker], T]) -> T: ...


class Moved:
    """A coordinator that is not here."""

    def __init__(
        self,
        call: CallBroker,
        settle: Callable[[], None],
        partition: int,
        search: Fault,
        elect: Callable[[ControlledBroker], None],
    ) -> None:
        self._call = call
        self._settle = settle
        self.partition = partition
        self._search = search
        self._elect: Callable[[ControlledBroker], None] | None = elect

    def back(self) -> None:
        """It is here again: its partition is loaded from the log, when all that stands there is safe."""
        elect, self._elect = self._elect, None
        if elect is not None:
            self._search.cancel()
            self._call(elect)
            self._settle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.back()


def move_groups(call: CallBroker, settle: Callable[[], None], faults: Faults, group: str | int) -> Moved:
    """Take away the coordinator of a group, or of a partition."""

    def partitions(broker: ControlledBroker) -> int:
        broker.ensure_offsets_topic()
        return broker.offsets_partitions

    count = call(partitions)
    partition = group if isinstance(group, int) else partition_for(group, count)
    if not 0 <= partition < count:
        raise NotPossible(f"__consumer_offsets has {count} partitions, and no {partition}")
    search = _nobody(faults, _GROUP, partition, count)
    call(lambda broker: broker.resign(partition))
    return Moved(call, settle, partition, search, lambda broker: broker.return_to(partition))


def move_transactions(call: CallBroker, settle: Callable[[], None], faults: Faults, transactional_id: str) -> Moved:
    """Take away the coordinator of a transactional id."""

    def partitions(broker: ControlledBroker) -> int:
        broker.ensure_transaction_topic()
        return broker.transactions.manager.config.transaction_state_log_num_partitions

    count = call(partitions)
    partition = partition_for(transactional_id, count)
    search = _nobody(faults, _TRANSACTION, partition, count)
    call(lambda broker: broker.resign_transactions(partition))
    return Moved(call, settle, partition, search, lambda broker: broker.return_to_transactions(partition))


def _nobody(faults: Faults, kind: int, partition: int, count: int) -> Fault:
    """Whoever looks for the coordinator hears that there is none, as while a partition has no leader."""

    def is_looking(request: Any) -> bool:
        keys = getattr(request, "coordinator_keys", None) or [getattr(request, "key", "")]
        is_kind = getattr(request, "key_type", _GROUP) == kind
        return is_kind and any(partition_for(key, count) == partition for key in keys)

    error = fail_with(ErrorCode.COORDINATOR_NOT_AVAILABLE, applied=False)
    return faults.order(_FIND_COORDINATOR, error, times=None, when=is_looking, ends_with_broker=True)
