"""The columns of the tables that are derived from others, with a comment on each. What may be NULL says so."""

import pyarrow as pa

from kohort.spark.columns import Column, Columns

_TIME = pa.timestamp("us", "UTC")
_IDS = pa.list_(pa.string())

_PARTITION = Column("partition", pa.int32(), "Partition of the offsets topic; -1 if the file's place does not tell")
_GROUP = Column("group", pa.string(), "Group id")

_KEY = (
    _GROUP,
    Column("topic", pa.string(), "Topic whose offset is committed"),
    Column("topic_partition", pa.int32(), "Partition of that topic"),
)

_LAG = (
    Column("committed_offset", pa.int64(), "Offset that is committed: the next one to be consumed"),
    Column("end_offset", pa.int64(), "Offset behind the last one of the topic partition, as far as `source` knows it"),
    Column("lag", pa.int64(), "Messages from the committed offset to the end; a lower bound if the source is a proxy"),
)

_SOURCE = Column(
    "source", pa.string(), "Where the end is from: end_offsets, topic_times, or furthest_group (the proxy)"
)

_LAG_TIME = (
    Column("produced_at", _TIME, "When the record at the committed offset was produced, as far as known; else NULL"),
    Column("lag_seconds", pa.float64(), "Age of that record; 0 without lag; NULL where nothing tells"),
    Column("lag_seconds_min", pa.float64(), "It is at least that old; NULL where nothing tells"),
    Column("lag_seconds_max", pa.float64(), "It is at most that old; NULL where nothing tells"),
    Column(
        "time_method",
        pa.string(),
        "caught_up, sample (a known record), interpolated (between two), before_first_sample (a lower bound), "
        "furthest_group (a lower bound: by then some group had read it), or NULL where nothing tells",
    ),
)

_REBALANCES = (
    _PARTITION,
    Column("offset", pa.int64(), "Offset of the group record in that partition"),
    _GROUP,
    Column("from_generation", pa.int32(), "Generation before; NULL if the log has none before"),
    Column("to_generation", pa.int32(), "Generation of the record; NULL if it removes the group"),
    Column("generations_skipped", pa.int64(), "Generations in between that left no record: failed or compacted away"),
    Column("started_at", _TIME, "When the first member asked to join; NULL unless the coordinator wrote that (4.x)"),
    Column(
        "started_after",
        _TIME,
        "The earliest that the rebalance can have begun: the record before, or, if that is later, all members joined "
        "minus the longest rebalance timeout; NULL if neither is known",
    ),
    Column("joined_at", _TIME, "When all members had joined; NULL if no rebalance was, or the record is too old"),
    Column("completed_at", _TIME, "Time of the record: the assignment was stored, the group emptied or removed"),
    Column("sync_seconds", pa.float64(), "From all joined to assignment stored; NULL if the first is not known"),
    Column("duration_seconds", pa.float64(), "From start to assignment stored; NULL if the start is not known"),
    Column("longest_seconds", pa.float64(), "The longest that the rebalance can have taken; NULL if nothing tells"),
    Column("members_joined", _IDS, "Member ids that came, a static member being who its instance id says"),
    Column("members_left", _IDS, "Member ids that went: left or expired, the log does not tell which"),
    Column("members_kept", _IDS, "Member ids that stayed, by their present name"),
    Column("members_replaced", _IDS, "Of those, static members that came back under a new member id"),
    Column("joined_count", pa.int32(), "How many came"),
    Column("left_count", pa.int32(), "How many went"),
    Column("kept_count", pa.int32(), "How many stayed"),
    Column("replaced_count", pa.int32(), "How many static members were replaced"),
    Column("partitions_total", pa.int64(), "Topic partitions owned after it; NULL if only the clients can tell"),
    Column(
        "partitions_moved",
        pa.int64(),
        "Those that went from one owner to another, with up to one generation in between; NULL like the total",
    ),
    Column(
        "partitions_assigned", pa.int64(), "Those that nobody owned in the two generations before; NULL like the total"
    ),
    Column(
        "partitions_revoked",
        pa.int64(),
        "Those that somebody owned in the generation before, and nobody now; NULL like the total",
    ),
    Column("leader_changed", pa.bool_(), "Whether both generations have a leader, and not the same"),
    Column("protocol_changed", pa.bool_(), "Whether both generations have an assignor, and not the same"),
    Column(
        "cause",
        pa.string(),
        "Why, as far as the log tells: group_created, first_generation, first_seen, member_joined, member_left, "
        "members_changed, members_restarted, static_member_replaced, subscription_changed, protocol_changed, "
        "cooperative_handover, partitions_changed, same_members (unknown), rewritten, group_emptied, group_converted "
        "or group_removed",
    ),
    Column("cause_detail", pa.string(), "The same as a sentence"),
)

_LAG_NOW = (
    *_KEY,
    Column("at", _TIME, "The instant for which this is told; NULL if neither it nor any time is known"),
    *_LAG,
    _SOURCE,
    Column("start_offset", pa.int64(), "First offset that the topic partition holds; NULL if not known"),
    Column("messages_lost", pa.int64(), "Part of the lag that can no longer be read; NULL if the start is not known"),
    Column(
        "messages_ahead", pa.int64(), "How far the commit lies beyond the end: the log was longer once, or is by now"
    ),
    *_LAG_TIME,
    Column("commit_timestamp", _TIME, "Time of the commit; NULL if it has none that can be shown"),
    Column("commit_age_seconds", pa.float64(), "Since that time; NULL without it"),
    Column("stall_seconds", pa.float64(), "Since the committed offset last changed; NULL without the commit history"),
)

_LAG_HISTORY = (
    _PARTITION,
    Column("offset", pa.int64(), "Offset of the commit's record in that partition"),
    *_KEY,
    Column("at", _TIME, "Time of the commit, for which this is told; NULL if it has none that can be shown"),
    *_LAG,
    _SOURCE,
    *_LAG_TIME,
)

_LAG_STATUS = (
    _PARTITION,
    Column("offset", pa.int64(), "Offset of the commit's record in that partition"),
    *_KEY,
    Column("at", _TIME, "Time of the commit"),
    Column("until", _TIME, "Time of what ended that: the next commit, a tombstone, or the end; NULL if nothing did"),
    Column("ended_by", pa.string(), "What that was: commit, removed, or now (the end of the history); NULL likewise"),
    *_LAG,
    _SOURCE,
    Column("window_commits", pa.int32(), "Commits in the window"),
    Column("complete", pa.float64(), "Share of the window that is filled"),
    Column("window_start", _TIME, "Time of the first commit in the window"),
    Column("status", pa.string(), "Burrow's just after the commit: OK, WARN, STOP, STALL or REWIND"),
    Column("status_code", pa.int32(), "Burrow's number for it: 1, 2, 4, 5, 6"),
    Column("status_before", pa.string(), "What it was just before; NULL at the first commit of an offset"),
    Column("last_status", pa.string(), "What it had become by `until`; without that, the same as after the commit"),
    Column("stopped_at", _TIME, "Since when it was STOP, if that is what it became; else NULL"),
)

_GROUP_STATUS = (
    _PARTITION,
    _GROUP,
    Column("at", _TIME, "From when"),
    Column("until", _TIME, "Until when; NULL for the last"),
    Column("status", pa.string(), "Burrow's: OK, WARN, or ERR; NOTFOUND if it has no partition, or no commit for long"),
    Column("status_code", pa.int32(), "Burrow's number for it: 0, 1, 2 or 3"),
    Column("partitions", pa.int32(), "Topic partitions with a committed offset"),
    Column("partitions_ok", pa.int32(), "Of those, how many are OK"),
    Column("partitions_warn", pa.int32(), "How many are WARN"),
    Column("partitions_stop", pa.int32(), "How many are STOP"),
    Column("partitions_stall", pa.int32(), "How many are STALL"),
    Column("partitions_rewind", pa.int32(), "How many are REWIND"),
)

_EXPIRY = (
    *_KEY,
    Column("committed_offset", pa.int64(), "Offset that is committed"),
    Column("commit_timestamp", _TIME, "Time of the commit; NULL if it has none that can be shown"),
    Column("expires_at", _TIME, "When the offset may be forgotten; NULL: not while everything stays as it is"),
    Column("expires_within_seconds", pa.float64(), "Until then; not above 0: at the broker's next look; NULL likewise"),
    Column(
        "reason",
        pa.string(),
        "The rule that decides: pending_transaction, subscribed, active_group (not while it stays so), explicit (the "
        "commit has its own time), group_empty (since when, plus the retention time), or, the same from the commit on: "
        "group_empty_commit, unsubscribed_topic, simple_group",
    ),
    Column("since", _TIME, "From when the retention time counts; NULL if it does not"),
    Column("group_state", pa.string(), "State of the group"),
)

_TOPIC_HEALTH = (
    Column("scope", pa.string(), "What the row sums up: a group, a partition of the offsets topic, or the topic"),
    Column("partition", pa.int32(), "Partition of the offsets topic; NULL for the topic"),
    Column("group", pa.string(), "Group id; NULL for a partition or the topic"),
    Column("records", pa.int64(), "Offset commits, group records and tombstones"),
    Column("bytes", pa.int64(), "What they take in their batches, uncompressed"),
    Column("live_records", pa.int64(), "Records that count: the last of their key"),
    Column("live_bytes", pa.int64(), "Bytes of those"),
    Column("superseded_records", pa.int64(), "Records that a later one of their key has replaced"),
    Column("superseded_bytes", pa.int64(), "Bytes of those"),
    Column("tombstone_records", pa.int64(), "Tombstones that are the last of their key"),
    Column("tombstone_bytes", pa.int64(), "Bytes of those"),
    Column("aborted_records", pa.int64(), "Commits of aborted transactions"),
    Column("aborted_bytes", pa.int64(), "Bytes of those"),
    Column("open_records", pa.int64(), "Commits of transactions without an end"),
    Column("open_bytes", pa.int64(), "Bytes of those"),
    Column("group_records", pa.int64(), "Of all records, those of groups (members, assignments)"),
    Column("group_bytes", pa.int64(), "Bytes of those"),
    Column("commits", pa.int64(), "Offset commits that counted: plain or committed, no tombstones"),
    Column("idle_commits", pa.int64(), "Of those, how many committed again what was committed already"),
    Column("first_commit_at", _TIME, "Time of the first of those commits; NULL without any"),
    Column("last_commit_at", _TIME, "Time of the last; NULL without any"),
    Column("commits_per_hour", pa.float64(), "Their rate between first and last; NULL with less than two times"),
    Column("rank", pa.int32(), "Place among the rows of this scope by number of commits; 1 is the loudest"),
    Column("share", pa.float64(), "Part of all bytes"),
    Column("skew", pa.float64(), "Bytes over the mean of the rows of this scope; 1 is even"),
    Column("compaction_debt", pa.float64(), "Part of the bytes that compaction would free: superseded and aborted"),
    Column("load_seconds", pa.float64(), "How long a coordinator takes to read that, at the rates that were given"),
)

_OFFSET_JUMPS = (
    _PARTITION,
    Column("offset", pa.int64(), "Offset of the commit's record in that partition"),
    *_KEY,
    Column("at", _TIME, "Time of the commit; NULL if it has none that can be shown"),
    Column("previous_at", _TIME, "Time of the commit before; NULL likewise"),
    Column("from_offset", pa.int64(), "Offset that was committed before"),
    Column("to_offset", pa.int64(), "Offset that is committed now"),
    Column("distance", pa.int64(), "How far it went; negative is back"),
    Column("kind", pa.string(), "rewind, reset_to_earliest, skip or reset_to_latest"),
    Column("evidence", pa.string(), "What shows it: backward, group_empty or faster_than_ever"),
    Column("after_tombstone", pa.bool_(), "Whether the offset had been removed in between: deleted or expired"),
    Column("speed", pa.float64(), "Messages a second since the commit before; NULL without both times"),
    Column("fastest_before", pa.float64(), "The most that this was before; NULL if there was nothing before"),
    Column("generation", pa.int32(), "Generation of the group at that place of the log; NULL if there was none"),
    Column("member_id", pa.string(), "Member that owned the topic partition then; NULL if nobody is known to"),
    Column("client_id", pa.string(), "Client id of that member; NULL likewise"),
    Column("client_host", pa.string(), "Host of that member; NULL likewise"),
)

DERIVED: dict[str, Columns] = {
    "rebalances": _REBALANCES,
    "lag": _LAG_NOW,
    "lag_history": _LAG_HISTORY,
    "lag_status": _LAG_STATUS,
    "group_status": _GROUP_STATUS,
    "expiry": _EXPIRY,
    "topic_health": _TOPIC_HEALTH,
    "offset_jumps": _OFFSET_JUMPS,
}
