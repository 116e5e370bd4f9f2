"""The compiled loop that goes through commits in their order: what Burrow would say at each, and how far each went.

It sees numbers only. Rows come sorted: for each topic partition first what is known of its end (samples), then how far
its furthest group was (claims), then the commits and tombstones of one group after the other, each in log order. What
it must remember from one batch of rows to the next is in arrays that the caller keeps.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from kohort.records.machine import CACHE
from kohort.spark.tables import walk_kinds as kinds

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Bytes = NDArray[np.int8]

_I64, _F64 = types.int64, types.float64
_LONGS, _DOUBLES, _BYTES = types.int64[::1], types.float64[::1], types.int8[::1]
_TABLE, _SPEEDS = types.int64[:, ::1], types.float64[:, ::1]


@njit(inline="always")
def _place(times: Any, count: Any, millis: Any) -> Any:
    """The last of the first `count` times that is not after `millis`; -1 if all are."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= millis:
            low = middle + 1
        else:
            high = middle
    return low - 1


@njit(inline="always")
def _sampled(points: Any, count: Any, place: Any, millis: Any) -> Any:
    """The end at a time, on the way from one sample to the next."""
    end = points[1, place]
    if place + 1 < count:
        part = (millis - points[0, place]) / (points[0, place + 1] - points[0, place])
        end += np.int64(np.floor((points[1, place + 1] - end) * part))
    return end


@njit(types.UniTuple(_I64, 3)(_LONGS, _TABLE, _TABLE, _I64, _I64), cache=CACHE, nogil=True)
def ends_at(memory: Longs, samples: Longs, claims: Longs, millis: int, lately: int) -> Any:
    """Where the topic partition ended at a time, how that is known, and where it ended lately before that."""
    place = _place(samples[0], memory[kinds.SAMPLES], millis)
    if place >= 0:
        before = _place(samples[0], memory[kinds.SAMPLES], millis - lately)
        then = _sampled(samples, memory[kinds.SAMPLES], before, millis - lately) if before >= 0 else samples[1, 0]
        return _sampled(samples, memory[kinds.SAMPLES], place, millis), samples[2, place], then
    place = _place(claims[0], memory[kinds.CLAIMS], millis)
    before = _place(claims[0], memory[kinds.CLAIMS], millis - lately)
    end = claims[1, place] if place >= 0 else np.int64(kinds.UNKNOWN)
    return end, np.int64(kinds.BY_CLAIM), claims[1, before] if before >= 0 else np.int64(kinds.UNKNOWN)


@njit(inline="always")
def _behind(end: Any, committed: Any) -> Any:
    """The lag; what is below zero counts as the beginning."""
    return max(max(end, 0) - max(committed, 0), 0)


@njit(inline="always")
def _distance(start: Any, end: Any) -> Any:
    """How far it is; what is too far for a number stops at the longest."""
    longest = np.int64(0x7FFF_FFFF_FFFF_FFFF)
    if start < 0 and end > longest + start:
        return longest
    if start > 0 and end < -longest + start:
        return -longest
    return end - start


@njit(_I64(_TABLE, _I64, _I64, _I64, _I64, _LONGS, _F64), cache=CACHE, nogil=True)
def judge(ring: Longs, stored: int, lag: int, now: int, end_then: int, rules: Longs, minimum_complete: float) -> Any:
    """Burrow's rules, in its order. The ring has offsets, times and lags, the oldest first."""
    allowed, last = rules[kinds.ALLOWED_LAG], stored - 1
    if stored / rules[kinds.INTERVALS] < minimum_complete or lag <= allowed:
        return kinds.OK
    if now - ring[1, last] > ring[1, last] - ring[1, 0] and end_then != kinds.UNKNOWN and end_then > ring[0, last]:
        return kinds.STOP
    for place in range(1, stored):
        if ring[0, place] < ring[0, place - 1]:
            is_made_good = False
            for later in range(place, stored):
                is_made_good |= ring[0, later] >= ring[0, place - 1]
            if not is_made_good:
                return kinds.REWIND
            break
    is_stall = is_slow = True
    for place in range(stored):
        if ring[2, place] <= allowed:
            return kinds.OK
        if place > 0:
            is_stall &= ring[0, place] == ring[0, place - 1]
            is_slow &= ring[2, place] >= ring[2, place - 1]
    return kinds.STALL if is_stall else kinds.WARN if is_slow else kinds.OK


@njit(_I64(_LONGS, _TABLE, _I64, types.UniTuple(_I64, 3), _I64, _LONGS, _F64, _TABLE), cache=CACHE, nogil=True)
def _close(
    memory: Longs, ring: Longs, now: int, ends: Any, ended_by: int, rules: Longs, minimum_complete: float, told: Longs
) -> Any:
    """The time of the last commit that Burrow has taken is over: what its status has come to by then."""
    row, stored = memory[kinds.WATCHED_ROW], memory[kinds.STORED]
    committed = ring[0, stored - 1]
    end = ends[0] if ends[1] != kinds.BY_CLAIM else max(ends[0], committed)
    status = judge(ring, stored, _behind(end, committed), now, ends[2], rules, minimum_complete)
    told[row, kinds.LAST_STATUS], told[row, kinds.UNTIL], told[row, kinds.ENDED_BY] = status, now, ended_by
    if status == kinds.STOP:
        told[row, kinds.STOPPED] = max(2 * ring[1, stored - 1] - ring[1, 0], told[row, kinds.CLOCK])
    if status != told[row, kinds.STATUS] or ended_by != kinds.BY_COMMIT:
        told[row, kinds.FLAGS] |= kinds.IS_CHANGE
    return status


@njit(types.void(_LONGS, _TABLE, _TABLE, _TABLE, _LONGS, _F64, _TABLE), cache=CACHE, nogil=True)
def finish_key(
    memory: Longs, ring: Longs, samples: Longs, claims: Longs, rules: Longs, minimum_complete: float, told: Longs
) -> None:
    """Nothing more comes of the key: its last commit stands, up to the end of the history if that is known."""
    if memory[kinds.LAST_ROW] >= 0:
        row = memory[kinds.LAST_ROW]
        told[row, kinds.FLAGS] |= kinds.IS_LAST
        told[row, kinds.IDLE_COMMITS], told[row, kinds.CHANGED] = memory[kinds.IDLE], memory[kinds.CHANGED_AT]
    if memory[kinds.STORED] > 0:
        if rules[kinds.AS_OF] == kinds.UNKNOWN:
            told[memory[kinds.WATCHED_ROW], kinds.FLAGS] |= kinds.IS_CHANGE
        else:
            now = max(rules[kinds.AS_OF], memory[kinds.KEY_CLOCK])
            ends = ends_at(memory, samples, claims, rules[kinds.AS_OF], rules[kinds.LATELY])
            _close(memory, ring, now, ends, kinds.BY_END, rules, minimum_complete, told)
    memory[kinds.LAST_ROW] = memory[kinds.WATCHED_ROW] = -1
    memory[kinds.STORED] = memory[kinds.COMMITS] = memory[kinds.IDLE] = memory[kinds.AFTER_REMOVAL] = 0
    memory[kinds.KEY_CLOCK] = memory[kinds.MILLIS] = memory[kinds.CHANGED_AT] = kinds.UNKNOWN


@njit(types.void(_LONGS, _TABLE, _I64, _I64, _I64, _LONGS), cache=CACHE, nogil=True)
def _store(memory: Longs, ring: Longs, committed: int, millis: int, lag: int, rules: Longs) -> None:
    """Keep a commit: in the place of the last one if it comes too soon after it, else behind it."""
    stored = memory[kinds.STORED]
    if stored > 0 and millis - ring[1, stored - 1] < rules[kinds.MIN_DISTANCE]:
        ring[0, stored - 1], ring[2, stored - 1] = committed, lag
        return
    if stored == rules[kinds.INTERVALS]:
        for place in range(1, stored):
            for part in range(3):
                ring[part, place - 1] = ring[part, place]
        stored -= 1
    ring[0, stored], ring[1, stored], ring[2, stored] = committed, memory[kinds.KEY_CLOCK], lag
    memory[kinds.STORED] = stored + 1


@njit(types.void(_LONGS, _DOUBLES, _I64, _I64, _I64, _I64, _LONGS, _TABLE, _SPEEDS), cache=CACHE, nogil=True)
def _step(
    memory: Longs,
    fastest: Doubles,
    row: int,
    place: int,
    committed: int,
    millis: int,
    rules: Longs,
    told: Longs,
    speeds: Doubles,
) -> None:
    """How far the commit went from the one before, whatever stands between them."""
    line = told[row]
    line[kinds.COMMITS_BEFORE], line[kinds.AFTER_TOMBSTONE] = memory[kinds.COMMITS], memory[kinds.AFTER_REMOVAL]
    line[kinds.PREVIOUS_MILLIS] = memory[kinds.MILLIS]
    speeds[row, kinds.FASTEST_BEFORE], speeds[row, kinds.SPEED] = fastest[0], np.nan
    distance = np.int64(0)
    if memory[kinds.COMMITS] > 0:
        line[kinds.PREVIOUS_COMMITTED], line[kinds.PREVIOUS_OFFSET] = memory[kinds.COMMITTED], memory[kinds.PLACE]
        distance = _distance(memory[kinds.COMMITTED], committed)
        if memory[kinds.MILLIS] != kinds.UNKNOWN and millis != kinds.UNKNOWN:
            speed = distance / max((millis - memory[kinds.MILLIS]) / 1000.0, 1.0)
            speeds[row, kinds.SPEED] = speed
            if not speed <= fastest[0]:
                fastest[0] = speed
        if distance < 0 or distance >= rules[kinds.LEAST_STEP]:
            line[kinds.FLAGS] |= kinds.IS_STEP
        if distance == 0 and memory[kinds.AFTER_REMOVAL] == 0:
            memory[kinds.IDLE] += 1
    line[kinds.DISTANCE] = distance
    if memory[kinds.COMMITS] == 0 or distance != 0 or memory[kinds.AFTER_REMOVAL] != 0:
        memory[kinds.CHANGED_AT] = millis
    memory[kinds.COMMITS] += 1
    memory[kinds.AFTER_REMOVAL] = 0
    memory[kinds.COMMITTED], memory[kinds.PLACE] = committed, place
    memory[kinds.MILLIS], memory[kinds.LAST_ROW] = millis, row


@njit(
    types.void(
        _I64,
        _BYTES,
        _BYTES,
        _LONGS,
        _LONGS,
        _LONGS,
        _LONGS,
        _DOUBLES,
        _TABLE,
        _TABLE,
        _TABLE,
        _LONGS,
        _F64,
        _TABLE,
        _SPEEDS,
    ),
    cache=CACHE,
    nogil=True,
)
def go_through(
    start: int,
    row_kinds: Bytes,
    changes: Bytes,
    offsets: Longs,
    values: Longs,
    times: Longs,
    memory: Longs,
    fastest: Doubles,
    ring: Longs,
    samples: Longs,
    claims: Longs,
    rules: Longs,
    minimum_complete: float,
    told: Longs,
    speeds: Doubles,
) -> None:
    """Go through rows from `start` on; `changes` is 1 where another key begins, 2 where another topic partition does.

    What a row tells is complete when the next row of its key has been seen, or `finish_key` was called.
    """
    for row in range(start, len(row_kinds)):
        kind, millis, value = row_kinds[row], times[row], values[row]
        if changes[row] != 0:
            finish_key(memory, ring, samples, claims, rules, minimum_complete, told)
            fastest[0] = np.nan
            if changes[row] == 2:
                memory[kinds.SAMPLES] = memory[kinds.CLAIMS] = 0
        if kind == kinds.END_SAMPLE or kind == kinds.RECORD_SAMPLE:  # numba would build a tuple
            count = memory[kinds.SAMPLES]
            samples[0, count], samples[1, count] = millis, value
            samples[2, count] = kinds.BY_END_SAMPLE if kind == kinds.END_SAMPLE else kinds.BY_RECORD_SAMPLE
            memory[kinds.SAMPLES] = count + 1
            continue
        if kind == kinds.CLAIM:
            count = memory[kinds.CLAIMS]
            claims[0, count] = millis
            claims[1, count] = max(value, claims[1, count - 1]) if count > 0 else value
            memory[kinds.CLAIMS] = count + 1
            continue
        if kind == kinds.UNWATCHED:
            _step(memory, fastest, row, offsets[row], value, millis, rules, told, speeds)
            continue
        memory[kinds.KEY_CLOCK] = max(memory[kinds.KEY_CLOCK], millis)
        if memory[kinds.KEY_CLOCK] == kinds.UNKNOWN:
            memory[kinds.AFTER_REMOVAL] = 1  # only a tombstone has no time here, and nothing that it could end
            continue
        asked = memory[kinds.KEY_CLOCK] if millis == kinds.UNKNOWN else millis
        ends = ends_at(memory, samples, claims, asked, rules[kinds.LATELY])
        before = np.int64(kinds.NOT_FOUND)
        if memory[kinds.STORED] > 0:
            ended_by = kinds.BY_REMOVAL if kind == kinds.REMOVAL else kinds.BY_COMMIT
            before = _close(memory, ring, memory[kinds.KEY_CLOCK], ends, ended_by, rules, minimum_complete, told)
        if kind == kinds.REMOVAL:
            memory[kinds.STORED] = 0
            memory[kinds.AFTER_REMOVAL] = 1
            continue
        end = ends[0] if ends[1] != kinds.BY_CLAIM else max(ends[0], value)
        lag = _behind(end, value)
        _store(memory, ring, value, millis, lag, rules)
        status = judge(ring, memory[kinds.STORED], lag, memory[kinds.KEY_CLOCK], ends[2], rules, minimum_complete)
        line = told[row]
        line[kinds.FLAGS] |= kinds.IS_STATUS if status == before else kinds.IS_STATUS | kinds.IS_CHANGE
        line[kinds.CLOCK], line[kinds.END] = memory[kinds.KEY_CLOCK], end
        line[kinds.SOURCE], line[kinds.LAG] = ends[1], lag
        line[kinds.WINDOW_COMMITS], line[kinds.WINDOW_MILLIS] = memory[kinds.STORED], ring[1, 0]
        line[kinds.STATUS], line[kinds.STATUS_BEFORE], line[kinds.LAST_STATUS] = status, before, status
        line[kinds.UNTIL], line[kinds.STOPPED], line[kinds.ENDED_BY] = kinds.UNKNOWN, kinds.UNKNOWN, kinds.NOTHING
        memory[kinds.WATCHED_ROW] = row
        _step(memory, fastest, row, offsets[row], value, millis, rules, told, speeds)
