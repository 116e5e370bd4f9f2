"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changes.

A fetch with epoch 0 names everything and asks for a session, if there is room for one. With that session's id and the
next epoch, a fetch names only partitions that are new or whose offset has moved, and the answer tells only of those
with records, an error, or a high watermark or log start other than what was told last. An epoch of -1 ends a session
and asks for none.

There is room for so many sessions. When it is full, a new one takes the place of one that was not used for two minutes,
or else of the smallest, if that is smaller and older than two minutes; or there is none, and the client goes on
without. Partitions of which something was told go to the end of the session, so that each has its turn to be first.
"""

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kohort.broker.leading import EpochEnd
from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from kohort.log.txn_index import AbortedTransaction
from kohort.records.batch import NO_LEADER_EPOCH

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000

_LAST_EPOCH = (1 << 31) - 1
_NO_OFFSET = -1


class Wanted(NamedTuple):
    """What a client wants of a partition."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_LEADER_EPOCH
    last_fetched_epoch: int = NO_LEADER_EPOCH


class Found(NamedTuple):
    """What it gets."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = _NO_OFFSET
    last_stable_offset: int = _NO_OFFSET
    log_start_offset: int = _NO_OFFSET
    records: bytes = b""
    next_offset: int = _NO_OFFSET
    """Behind the records; not told."""
    aborted: tuple[AbortedTransaction, ...] | None = None
    diverging: EpochEnd | None = None


class SessionAnswer(NamedTuple):
    """The answer as a whole, and of which partitions it tells."""

    error: ErrorCode
    session_id: int
    found: Mapping[TopicPartition, Found]


class _Cached:
    """A partition of a session: what is wanted of it, and what was told last."""

    __slots__ = ("high_watermark", "log_start_offset", "wanted")

    def __init__(self, wanted: Wanted, found: Found | None = None) -> None:
        self.wanted = wanted
        self.high_watermark = _NO_OFFSET if found is None else found.high_watermark
        self.log_start_offset = _NO_OFFSET if found is None else found.log_start_offset

    def takes(self, found: Found) -> bool:
        """Whether there is something to tell, which counts as told from now on."""
        is_new = (
            bool(found.records)
            or found.diverging is not None
            or found.error is not ErrorCode.NONE
            or found.high_watermark != self.high_watermark
            or found.log_start_offset != self.log_start_offset
        )
        self.high_watermark = found.high_watermark if found.error is ErrorCode.NONE else _NO_OFFSET
        self.log_start_offset = found.log_start_offset
        return is_new


class _Session:
    def __init__(self, session_id: int, partitions: dict[TopicPartition, _Cached], now_ms: int) -> None:
        self.id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = partitions
        self.created_ms = self.last_used_ms = now_ms
        self.is_old = False

    def update(self, wanted: Mapping[TopicPartition, Wanted], forgotten: Iterable[TopicPartition]) -> None:
        for partition, what in wanted.items():
            if (known := self.partitions.get(partition)) is not None:
                known.wanted = what
            else:
                self.partitions[partition] = _Cached(what)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def select(self, found: Mapping[TopicPartition, Found]) -> dict[TopicPartition, Found]:
        """What there is to tell."""
        told = {}
        for partition, what in found.items():
            if self.partitions[partition].takes(what):
                told[partition] = what
                self.partitions[partition] = self.partitions.pop(partition)
        return told


class FetchContext:
    """One fetch: which partitions it is for, and how it is answered. This one has no session."""

    def __init__(self, wanted: Mapping[TopicPartition, Wanted]) -> None:
        self.wanted = wanted

    def answer(self, found: Mapping[TopicPartition, Found]) -> SessionAnswer:
        return SessionAnswer(ErrorCode.NONE, NO_SESSION, found)


class _Refused(FetchContext):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__({})
        self._error = error

    def answer(self, found: Mapping[TopicPartition, Found]) -> SessionAnswer:
        return SessionAnswer(self._error, NO_SESSION, found)


class _Full(FetchContext):
    """Everything is named; a session may come of it."""

    def __init__(self, sessions: "FetchSessions", wanted: Mapping[TopicPartition, Wanted]) -> None:
        super().__init__(wanted)
        self._sessions = sessions

    def answer(self, found: Mapping[TopicPartition, Found]) -> SessionAnswer:
        partitions = {partition: _Cached(self.wanted[partition], what) for partition, what in found.items()}
        return SessionAnswer(ErrorCode.NONE, self._sessions.create(partitions), found)


class _Incremental(FetchContext):
    def __init__(self, session: _Session) -> None:
        super().__init__({partition: cached.wanted for partition, cached in session.partitions.items()})
        self._session = session
        self._epoch = session.epoch

    def answer(self, found: Mapping[TopicPartition, Found]) -> SessionAnswer:
        session = self._session
        if session.epoch != self._epoch:  # another fetch came in this session before we answered
            return SessionAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, {})
        return SessionAnswer(ErrorCode.NONE, session.id, session.select(found))


class FetchSessions:
    """All sessions of a broker, the one that was used last at the end."""

    def __init__(self, slots: int, clock: Clock) -> None:
        self._slots = slots
        self._clock = clock
        self._sessions: dict[int, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self,
        session_id: int,
        epoch: int,
        wanted: Mapping[TopicPartition, Wanted],
        forgotten: Iterable[TopicPartition] = (),
    ) -> FetchContext:
        """What a fetch with this session and epoch is for."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            return FetchContext(wanted) if epoch == FINAL_EPOCH else _Full(self, wanted)
        session = self._sessions.get(session_id)
        if session is None:
            return _Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return _Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.update(wanted, forgotten)
        if not session.partitions:
            del self._sessions[session_id]
            return FetchContext(wanted)
        self._touch(session)
        session.epoch = next_epoch(session.epoch)
        return _Incremental(session)

    def create(self, partitions: dict[TopicPartition, _Cached]) -> int:
        """A session for these, if there is room or can be made; its id."""
        now_ms = self._clock.monotonic_ms()
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = random.randrange(1, _LAST_EPOCH)
        while session_id in self._sessions:
            session_id = random.randrange(1, _LAST_EPOCH)
        self._sessions[session_id] = _Session(session_id, partitions, now_ms)
        return session_id

    def _touch(self, session: _Session) -> None:
        session.last_used_ms = self._clock.monotonic_ms()
        session.is_old = session.last_used_ms - session.created_ms > EVICTION_MS
        self._sessions[session.id] = self._sessions.pop(session.id)

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of so many partitions."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            del self._sessions[oldest.id]
            return True
        old = (session for session in self._sessions.values() if session.is_old)
        smallest = min(old, key=lambda session: (len(session.partitions), session.id), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        del self._sessions[smallest.id]
        return True


def next_epoch(epoch: int) -> int:
    return 1 if epoch == _LAST_EPOCH else epoch + 1
