"""The life of a group.

    Empty ──▶ PreparingRebalance ──▶ CompletingRebalance ──▶ Stable
      ▲              │  ▲                   │                  │
      └──────────────┘  └───────────────────┴──────────────────┘         and from everywhere to Dead

A group is Empty when it has no members: new, abandoned, or a mere store of offsets. The first member that joins takes
it to PreparingRebalance, where joins are parked until everybody who is expected has come, or the time is up. Then the
generation goes up by one and the joins are answered: in CompletingRebalance everybody waits for the leader's
assignment. With it the group is Stable until somebody comes, goes or changes his mind. Dead is a group that this
coordinator has let go of: deleted, expired, or moved to another broker.

The table below is the whole truth about transitions: `GroupMetadata.transition_to` obeys it and `docs/states.svg` is
drawn from it.
"""

from enum import StrEnum


class GroupState(StrEnum):
    """Where a group is in its life; the values are what ListGroups and DescribeGroups show."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"


VALID_PREVIOUS_STATES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
}
"""For each state, the states that a group may come from."""
