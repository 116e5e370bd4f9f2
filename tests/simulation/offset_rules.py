"""What may be read, given what was committed and removed."""

from collections import defaultdict
from collections.abc import Iterable

from tests.simulation.history import History, Key, Outcome, Read, Violation, Write

Writes = dict[Key, dict[int, Write]]
Times = dict[str, list[tuple[float, float]]]


def check(history: History) -> None:
    writes_of: Writes = defaultdict(dict)
    for write in history.writes:
        for key, offset in write.offsets.items():
            if offset in writes_of[key]:
                raise ValueError(f"offset {offset} of {key} was committed twice: nobody could tell them apart")
            writes_of[key][offset] = write
    for read in history.reads:
        if read.offset is not None:
            _check_origin(read, writes_of[read.key].get(read.offset))
    answers: dict[int, list[Read]] = defaultdict(list)
    alive = _times_with_members(history)
    for read in history.reads:
        answers[read.answer].append(read)
        _check_stable(history, read, writes_of[read.key].values())
        if read.offset is None:
            _check_absence(history, read, writes_of[read.key].values(), alive)
        else:
            _check_fresh(read, writes_of[read.key])
            _check_removed(history, read, writes_of[read.key][read.offset])
    for number, reads in answers.items():
        if number >= 0:
            _check_whole(history, reads, writes_of)


def _check_origin(read: Read, write: Write | None) -> None:
    if write is None:
        raise Violation(f"{read}: nobody ever committed that")
    if write.outcome is Outcome.FAILED:
        raise Violation(f"{read}: its commit was refused or aborted: {write}")
    if write.began > read.ended:
        raise Violation(f"{read}: it was committed later: {write}")
    if write.visible_from > read.ended:
        raise Violation(f"{read}: its transaction had not ended: {write}")
    write.seen = min(write.seen, read.ended)


def _check_fresh(read: Read, writes: dict[int, Write]) -> None:
    assert read.offset is not None
    found = writes[read.offset]
    for newer in writes.values():
        if found.in_effect_by < newer.began and _in_effect_by(newer, read) < read.began:
            raise Violation(f"{read}: is {found}, but {newer} came after it and was in effect")


def _in_effect_by(write: Write, read: Read) -> float:
    """Whoever wants stable offsets is told none until the marker of a committed transaction stands."""
    return min(write.in_effect_by, write.decided) if read.is_stable else write.in_effect_by


def _check_removed(history: History, read: Read, found: Write) -> None:
    """What was removed does not come back."""
    for removal in history.removals:
        if removal.key == read.key and found.in_effect_by < removal.began and removal.ended < read.began:
            raise Violation(f"{read}: is {found}, which {removal} had taken away")


def _check_absence(history: History, read: Read, writes: Iterable[Write], alive: Times) -> None:
    for write in writes:
        if _in_effect_by(write, read) < read.began and not _may_be_gone(history, read, write, alive):
            raise Violation(f"{read}: there is no offset, but {write} was in effect and nobody removed it")


def _may_be_gone(history: History, read: Read, write: Write, alive: Times) -> bool:
    if _is_removed(history, read, write):
        return True
    group = read.key[0]
    if any(start <= _in_effect_by(write, read) and read.ended <= end for start, end in alive[group]):
        return False
    return any(one.group == group and write.began < one.at < read.ended for one in history.expiries)


def _check_stable(history: History, read: Read, writes: Iterable[Write]) -> None:
    """A stable offset is not told while a transaction may still change it."""
    for write in writes:
        if (
            read.is_stable
            and write.pending is not None
            and write.pending[0] < read.began
            and read.ended < write.pending[1]
            and not _is_removed(history, read, write)
        ):
            raise Violation(f"{read}: is told as stable within the transaction of {write}")


def _is_removed(history: History, read: Read, write: Write) -> bool:
    """Whether somebody may have taken it away, be it pending or in effect."""
    return any(
        removal.key == read.key and removal.ended > write.began and removal.began < read.ended
        for removal in history.removals
    )


def _check_whole(history: History, reads: list[Read], writes_of: Writes) -> None:
    """What was committed at once is in one answer as a whole or not at all."""
    by_key = {read.key: read for read in reads}
    for read in reads:
        if read.offset is None:
            continue
        whole = writes_of[read.key][read.offset]
        for key in whole.offsets.keys() & by_key.keys():
            other = by_key[key]
            if other.offset is None:
                may_be_gone = any(removal.key == key for removal in history.removals) or history.expiries
                if not may_be_gone:
                    raise Violation(f"{other} beside {read}: half of {whole}")
            elif writes_of[key][other.offset].in_effect_by < whole.began:
                raise Violation(f"{other} beside {read}: half of {whole}")


def _times_with_members(history: History) -> Times:
    """When a group certainly had a member: the same one was heard in the same generation before and after."""
    heard: dict[tuple[str, str, int], tuple[float, float]] = {}
    for one in history.commits:
        who = one.group, one.member, one.generation
        start, end = heard.get(who, (one.ended, one.began))
        heard[who] = min(start, one.ended), max(end, one.began)
    times: Times = defaultdict(list)
    for (group, _, _), span in heard.items():
        times[group].append(span)
    return times
