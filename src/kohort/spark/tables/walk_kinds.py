"""The numbers by which the walk's compiled loop and those around it understand each other.

They are compiled into `walk_kernel`, so whoever changes one must touch that module: the cache of compiled code looks at
the time of its file only.
"""

END_SAMPLE, RECORD_SAMPLE, CLAIM, COMMIT, UNWATCHED, REMOVAL = range(6)
"""Kinds of rows. A commit that Burrow does not take (too old when it came, or without a time) is unwatched."""

LATER, LATER_REMOVAL, ABORTED, OPENED = range(6, 10)
"""Kinds that only sums are made of: later than the walk is to go, or of transactions that do not count."""

BY_CLAIM, BY_END_SAMPLE, BY_RECORD_SAMPLE = range(3)
"""How an end is known."""

NOT_FOUND, OK, WARN, ERR, STOP, STALL, REWIND = range(7)
"""Burrow's own numbers; a partition is never the first or ERR."""

NOTHING, BY_COMMIT, BY_REMOVAL, BY_END = range(4)
"""What ended the time of a commit."""

UNKNOWN = -(1 << 63)
"""No such number: a time, or an end, that nobody knows."""

IS_STATUS, IS_CHANGE, IS_STEP, IS_LAST = 1, 2, 4, 8
"""What a commit has to tell: a status, a change of it, a step that may be a jump, and the sums of its offset's life."""

# What is told of a commit.
(
    FLAGS,
    CLOCK,
    END,
    SOURCE,
    LAG,
    WINDOW_COMMITS,
    WINDOW_MILLIS,
    STATUS,
    STATUS_BEFORE,
    LAST_STATUS,
    UNTIL,
    ENDED_BY,
    STOPPED,
    PREVIOUS_COMMITTED,
    PREVIOUS_OFFSET,
    PREVIOUS_MILLIS,
    AFTER_TOMBSTONE,
    COMMITS_BEFORE,
    DISTANCE,
    IDLE_COMMITS,
    CHANGED,
    COLUMNS,
) = range(22)

SPEED, FASTEST_BEFORE = range(2)

# What is remembered of the key that is being gone through.
(
    LAST_ROW,
    WATCHED_ROW,
    STORED,
    KEY_CLOCK,
    COMMITS,
    IDLE,
    CHANGED_AT,
    COMMITTED,
    PLACE,
    MILLIS,
    AFTER_REMOVAL,
    SAMPLES,
    CLAIMS,
    MEMORY,
) = range(14)

# How it is to be done.
(INTERVALS, MIN_DISTANCE, LATELY, ALLOWED_LAG, AS_OF, LEAST_STEP, RULES) = range(7)

CLAIM_MILLIS = 60_000
"""Where nothing is known of a topic partition's end, the furthest group is looked at so often."""
