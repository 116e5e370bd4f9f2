"""Who may be heard, given who has joined: generations, shares, instances, epochs, coordinators."""

from collections import defaultdict
from collections.abc import Iterator

from tests.simulation.history import NEVER, History, Joined, Outcome, Synced, Violation


def check(history: History) -> None:
    _check_shares(history)
    _check_generations(history)
    _check_instances(history)
    _check_epochs(history)
    _check_coordinators(history)


def _check_shares(history: History) -> None:
    by_generation: dict[tuple[str, int], list[dict[str, Synced]]] = defaultdict(list)
    for sync in sorted(history.syncs, key=lambda sync: sync.ended):
        lives = by_generation[(sync.group, sync.generation)]
        since = min((other.began for other in lives[-1].values()), default=0.0) if lives else 0.0
        if not lives or _is_forgotten(history, sync.group, since, sync.ended):
            lives.append({})  # the same number, but another group
        others = lives[-1]
        for other in others.values():
            if other.member != sync.member and other.share & sync.share:
                raise Violation(f"{sync} and {other}: two members of one generation own the same partition")
            if other.member == sync.member and other.share != sync.share:
                raise Violation(f"{sync} and {other}: one member of one generation got two shares")
        others[sync.member] = sync


def _check_generations(history: History) -> None:
    for sync in history.syncs:
        for later in (*history.joins, *history.commits):
            if (
                later.group == sync.group
                and later.generation < sync.generation
                and later.began > sync.ended
                and not _is_forgotten(history, sync.group, sync.began, later.ended)
            ):
                raise Violation(f"{later} after {sync}: a generation that is over")


def _is_forgotten(history: History, group: str, began: float, ended: float) -> bool:
    """Whether a group may have gone meanwhile with all that it had, or because it had nothing, and begun anew."""
    first_kept = min(
        (write.in_effect_by for write in history.writes if any(key[0] == group for key in write.offsets)), default=NEVER
    )
    return any(one.group == group and began < one.at < ended for one in history.expiries) or any(
        began < at < min(ended, first_kept) for at in history.cleanups
    )


def _check_instances(history: History) -> None:
    """Whoever takes the place of a static member fences the one before.

    Not if that happened in a generation that never came to be: it is written down when the leader has synced, and until
    then a crash leads back to the generation before, and to who was a member there.
    """
    for heard in history.commits:
        if heard.instance is None:
            continue
        own = max((join.ended for join in history.joins if join.member == heard.member), default=0.0)
        for join in history.joins:
            if heard.generation < join.generation and not _came_to_be(history, join, heard.began):
                continue
            takes_place = join.group == heard.group and join.instance == heard.instance and join.member != heard.member
            if takes_place and own < join.began and join.ended < heard.began:
                raise Violation(f"{heard}: {join} had taken its place")


def _came_to_be(history: History, join: Joined, at: float) -> bool:
    """Whether somebody had got a share by then in the generation of a join, or in a later one."""
    return any(
        sync.group == join.group and sync.generation >= join.generation and sync.ended < at for sync in history.syncs
    )


def _check_epochs(history: History) -> None:
    """A producer that was given a higher epoch fences the one before."""
    for epoch in history.epochs:
        for heard in history.transacted:
            if heard.name == epoch.name and heard.producer < epoch.producer and heard.began > epoch.ended:
                raise Violation(f"{heard} was answered well after {epoch}")


def _check_coordinators(history: History) -> None:
    """Nobody is answered for a group while somebody else coordinates it."""
    for away in history.away:
        for group, began, ended, what in _answered(history):
            if group == away.group and away.began < began and ended < away.ended:
                raise Violation(f"{what} was answered in {away}")


def _answered(history: History) -> Iterator[tuple[str, float, float, object]]:
    for read in history.reads:
        yield read.key[0], read.began, read.ended, read
    for write in history.writes:
        if write.outcome is Outcome.OK and write.decided == NEVER:
            yield next(iter(write.offsets))[0], write.began, write.ended, write
    for heard in (*history.commits, *history.syncs, *history.joins):
        yield heard.group, heard.began, heard.ended, heard
