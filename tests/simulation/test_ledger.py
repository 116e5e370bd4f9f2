"""Histories written by hand, each of which breaks one promise: the ledger says so."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from tests.simulation.history import Away, Epoch, Expired, Fenced, Joined, Outcome, Read, Removal, Synced, Transacted
from tests.simulation.ledger import Ledger, Violation, Write

KEY, OTHER = ("g", 0), ("g", 1)


def _committed(ledger: Ledger, offset: int, began: float, ended: float) -> Write:
    write = ledger.write({KEY: offset}, began)
    write.end(ended, Outcome.OK)
    return write


def _lost(ledger: Ledger) -> None:
    _committed(ledger, 1, 0, 1)
    _committed(ledger, 2, 2, 3)
    ledger.reads.append(Read(KEY, 1, 4, 5))


def _spurious_absence(ledger: Ledger) -> None:
    _committed(ledger, 1, 0, 1)
    ledger.reads.append(Read(KEY, None, 2, 3))


def _from_nowhere(ledger: Ledger) -> None:
    ledger.reads.append(Read(KEY, 7, 2, 3))


def _aborted(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0).end(1, Outcome.FAILED)
    ledger.reads.append(Read(KEY, 1, 2, 3))


def _seen_and_gone(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0)
    ledger.reads += [Read(KEY, 1, 2, 3), Read(KEY, None, 4, 5)]


def _before_its_end(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0).visible_from = 4
    ledger.reads.append(Read(KEY, 1, 2, 3))


def _torn(ledger: Ledger) -> None:
    ledger.write({KEY: 1, OTHER: 2}, 0).end(1, Outcome.OK)
    ledger.write({KEY: 3, OTHER: 4}, 2)
    ledger.reads += [Read(KEY, 3, 5, 6, answer=0), Read(OTHER, 2, 5, 6, answer=0)]


def _torn_later(ledger: Ledger) -> None:
    ledger.write({KEY: 1, OTHER: 2}, 0).end(1, Outcome.OK)
    ledger.write({KEY: 3, OTHER: 4}, 2)
    ledger.reads += [Read(KEY, 3, 5, 6), Read(OTHER, 2, 7, 8)]


def _decided_and_lost(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0).decided = 2
    ledger.settle(10)
    ledger.reads.append(Read(KEY, None, 11, 12))


def _decided_and_unstable(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0).decided = 2
    ledger.reads.append(Read(KEY, None, 3, 4, is_stable=True))


def _stable_within(ledger: Ledger) -> None:
    ledger.write({KEY: 1}, 0).pending = (1, 5)
    ledger.reads.append(Read(KEY, None, 2, 3, is_stable=True))


def _comes_back(ledger: Ledger) -> None:
    _committed(ledger, 1, 0, 1)
    ledger.removals.append(Removal(KEY, 2, 3))
    ledger.reads.append(Read(KEY, 1, 4, 5))


def _expires_with_members(ledger: Ledger) -> None:
    ledger.commits += [Fenced("g", 1, 0, 1, "m"), Fenced("g", 1, 8, 9, "m")]
    _committed(ledger, 1, 2, 3)
    ledger.expiries.append(Expired("g", 4))
    ledger.reads.append(Read(KEY, None, 5, 6))


def _overlap(ledger: Ledger) -> None:
    ledger.syncs += [Synced("g", 1, "a", frozenset({0}), 0, 1), Synced("g", 1, "b", frozenset({0, 1}), 0, 1)]


def _two_shares(ledger: Ledger) -> None:
    ledger.syncs += [Synced("g", 1, "a", frozenset({0}), 0, 1), Synced("g", 1, "a", frozenset({1}), 2, 3)]


def _generation_goes_back(ledger: Ledger) -> None:
    ledger.syncs.append(Synced("g", 2, "a", frozenset({0}), 0, 1))
    ledger.joins.append(Joined("g", 1, "b", 2, 3))


def _old_generation(ledger: Ledger) -> None:
    ledger.syncs.append(Synced("g", 2, "a", frozenset({0}), 0, 1))
    ledger.commits.append(Fenced("g", 1, 2, 3, "b"))


def _fenced_instance(ledger: Ledger) -> None:
    ledger.joins += [Joined("g", 1, "old", 0, 1, "i"), Joined("g", 1, "new", 2, 3, "i")]
    ledger.commits.append(Fenced("g", 1, 4, 5, "old", "i"))


def _fenced_producer(ledger: Ledger) -> None:
    ledger.epochs += [Epoch("t", (1, 0), 0), Epoch("t", (1, 1), 1)]
    ledger.transacted.append(Transacted("t", (1, 0), 2))


def _answered_while_away(ledger: Ledger) -> None:
    ledger.away.append(Away("g", 0, 5))
    ledger.reads.append(Read(KEY, None, 1, 2))


BROKEN = [
    _lost,
    _spurious_absence,
    _from_nowhere,
    _aborted,
    _seen_and_gone,
    _before_its_end,
    _torn,
    _torn_later,
    _decided_and_lost,
    _decided_and_unstable,
    _stable_within,
    _comes_back,
    _expires_with_members,
    _overlap,
    _two_shares,
    _generation_goes_back,
    _old_generation,
    _fenced_instance,
    _fenced_producer,
    _answered_while_away,
]


@pytest.mark.parametrize("history", BROKEN, ids=lambda history: history.__name__.strip("_"))
def test_a_history_that_breaks_a_promise_is_a_violation(history: Callable[[Ledger], None]) -> None:
    ledger = Ledger()
    history(ledger)
    with pytest.raises(Violation):
        ledger.check()


def test_what_nobody_can_know_is_no_violation() -> None:
    ledger = Ledger()
    _committed(ledger, 1, 0, 1)
    ledger.write({KEY: 2}, 2)  # never answered
    ledger.reads += [Read(KEY, 1, 3, 4), Read(KEY, 2, 5, 6)]
    ledger.removals.append(Removal(KEY, 7))  # never answered either
    ledger.reads += [Read(KEY, None, 8, 9)]
    ledger.check()


def test_offsets_of_a_group_without_members_may_expire() -> None:
    ledger = Ledger()
    _committed(ledger, 1, 2, 3)
    ledger.expiries.append(Expired("g", 4))
    ledger.reads.append(Read(KEY, None, 5, 6))
    ledger.check()


@pytest.mark.parametrize("has_offsets", [False, True])
def test_a_group_that_has_nothing_may_go_and_begin_anew(has_offsets: bool) -> None:
    ledger = Ledger()
    if has_offsets:
        _committed(ledger, 1, 2, 3)
    ledger.syncs.append(Synced("g", 1, "a", frozenset({0}), 0, 1))
    ledger.cleanups.append(4)
    ledger.syncs.append(Synced("g", 1, "b", frozenset({0}), 5, 6))
    with pytest.raises(Violation) if has_offsets else nullcontext():
        ledger.check()


@pytest.mark.parametrize("came_to_be", [False, True])
def test_a_generation_that_nobody_has_got_a_share_of_may_never_have_been(came_to_be: bool) -> None:
    ledger = Ledger()
    ledger.joins.append(Joined("g", 1, "i-old", 0, 1, instance="i"))
    ledger.joins.append(Joined("g", 2, "i-new", 2, 3, instance="i"))
    if came_to_be:
        ledger.syncs.append(Synced("g", 2, "i", frozenset({0}), 3, 4))
    ledger.commits.append(Fenced("g", 1, 5, 6, member="i-old", instance="i"))
    with pytest.raises(Violation) if came_to_be else nullcontext():
        ledger.check()
