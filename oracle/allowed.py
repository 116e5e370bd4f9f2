"""The differences that are allowed, each with the sentence of `docs/faithfulness.md` that explains it."""

from dataclasses import dataclass
from pathlib import Path

_FAITHFULNESS = Path(__file__).parent.parent / "docs" / "faithfulness.md"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Fields of a sequence that may differ: `*` stands for anything in where they are."""

    sequence: str
    where: str
    sentence: str

    @property
    def pattern(self) -> str:
        """Brackets mean themselves."""
        return self.where.replace("[", "[[]")


_FIRST_SEARCH = "The first search for a coordinator finds it (2.6.3: COORDINATOR_NOT_AVAILABLE at first)"
_UNKNOWN_KIND = (
    "a search for the coordinator of an unknown kind of key is INVALID_REQUEST (2.6.3: UNKNOWN_SERVER_ERROR)"
)
_NO_CLIENT_ID = "a client without a client id gets a bare UUID as member id and is described like any other"
_REPLACED = "A parked join or sync that the same member replaces by a new one is answered REBALANCE_IN_PROGRESS"
_NEW_TIMEOUTS = "KAFKA-14009, a member that joins again with other timeouts gets them."
_STATIC_TIMEOUTS = "KAFKA-14009, a static member that comes back brings its new timeouts."
_PARKED_SYNC = "A parked sync of a member that leaves is answered UNKNOWN_MEMBER_ID (2.6.3: never)"
_NEVER_SYNCED = "KAFKA-12890, members that never ask for their assignment are removed."
_TOO_LARGE = "KAFKA-16371, a commit that was refused for its metadata leaves nothing pending."
_ONE_REPLICA = "Writes go on whatever min.insync.replicas says, for there is one broker (2.6.3: NOT_ENOUGH_REPLICAS"
_STAYS_REMOVED = "What a running coordinator removes does not come back after a restart, as it does up to Kafka 3.9."
"""Hence the tombstone of an offset that is only pending."""

ALLOWED = (
    Allowed("first-search-for-a-coordinator", "*", _FIRST_SEARCH),
    *(Allowed(f"find-coordinator-of-an-unknown-kind-v{version}", "*.error_*", _UNKNOWN_KIND) for version in (1, 2, 3)),
    Allowed("join-without-a-client-id", "*", _NO_CLIENT_ID),
    Allowed("join-that-is-sent-again-from-another-connection", "12 *: is kept waiting", _REPLACED),
    Allowed("sync-that-is-sent-again-from-another-connection", "15 *: is kept waiting", _REPLACED),
    Allowed("join-again-with-other-timeouts", "7 written.*_timeout", _NEW_TIMEOUTS),
    Allowed("static-member-comes-back-with-other-timeouts", "12 written.*_timeout", _STATIC_TIMEOUTS),
    Allowed("leave-of-one-that-waits-for-its-assignment", "15 *: is kept waiting", _PARKED_SYNC),
    Allowed("sync-that-never-comes", "4 Heartbeat *.error_code", _NEVER_SYNCED),
    Allowed("sync-that-never-comes", "5 DescribeGroups *", _NEVER_SYNCED),
    Allowed("sync-that-never-comes", "6 written.*", _NEVER_SYNCED),
    Allowed("commit-of-too-much-metadata-leaves-nothing-pending", "2 *partitions[1].error_code", _TOO_LARGE),
    Allowed("txn-offsets-with-too-much-metadata", "4 *partitions[1].error_code", _TOO_LARGE),
    Allowed("limit-of-replicas", "2 OffsetCommit *.error_code", _ONE_REPLICA),
    Allowed("limit-of-replicas", "3 OffsetFetch *.committed_offset", _ONE_REPLICA),
    Allowed("limit-of-replicas", "* written.*", _ONE_REPLICA),
    Allowed("delete-an-offset-that-is-pending", "12 written.*", _STAYS_REMOVED),
    Allowed("delete-an-offset-that-is-pending", "13 written.*", _STAYS_REMOVED),
    Allowed("txn-offsets-of-a-group-that-had-nothing-aborted", "11 written.*", _STAYS_REMOVED),
    Allowed("txn-offsets-of-a-group-that-had-nothing-aborted", "12 written.*", _STAYS_REMOVED),
    Allowed("txn-offsets-and-a-deletion-of-the-group", "13 written.records*", _STAYS_REMOVED),
)


def unfounded() -> list[Allowed]:
    """Those whose sentence does not stand in the document."""
    text = _FAITHFULNESS.read_text(encoding="utf-8")
    return [allowed for allowed in ALLOWED if allowed.sentence not in text]
