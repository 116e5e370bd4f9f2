"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changes.

A fetch with epoch 0 names everything and asks for a session, if there is room for one. With that session's id and the
next epoch, a fetch names only partitions that are new or whose offset has moved, and the answer tells only of those
with records, an error, or a high watermark or log start other than what was told last. An epoch of -1 ends a session
and asks for none.

There is room for so many sessions. When it is full, a new one takes the place of one that was not used for two minutes,
or else of the smallest, if that is smaller and older than two minutes; or there is none, and the client goes on
without. Partitions of which something was told go to the end of the session, so that each has its turn to be first.

A session calls its topics by their names or by their ids (KIP-516), from its first fetch to its last. It keeps the name
that an id had when it was first known: if the topic is gone since, or another one has its name, that is told, and not
that nobody knows the id.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

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


class TopicIdPartition(NamedTuple):
    """A partition of a topic that is called by its id."""

    topic_id: UUID
    partition: int


FetchKey = TopicPartition | TopicIdPartition
NameOf = Callable[[UUID], str | None]
"""The name of the topic that has an id now."""


class Wanted(NamedTuple):
    """What a client wants of a partition."""

    offset: int
    max_bytes: int
    leader_epoch: int = NO_LEADER_EPOCH
    last_fetched_epoch: int = NO_LEADER_EPOCH
    topic: str | None = None
    """The name of a topic that is called by its id, if it is known."""


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
    found: Mapping[FetchKey, Found]


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
    def __init__(
        self, session_id: int, partitions: dict[FetchKey, _Cached], now_ms: int, *, uses_topic_ids: bool
    ) -> None:
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions = partitions
        self.created_ms = self.last_used_ms = now_ms
        self.is_old = False

    def update(self, wanted: Mapping[FetchKey, Wanted], forgotten: Iterable[FetchKey]) -> None:
        for partition, what in wanted.items():
            if (known := self.partitions.get(partition)) is not None:
                known.wanted = what if known.wanted.topic is None else what._replace(topic=known.wanted.topic)
            else:
                self.partitions[partition] = _Cached(what)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def name_topics(self, name_of: NameOf) -> None:
        """An id that nobody knew may be known by now."""
        for partition, cached in self.partitions.items():
            if cached.wanted.topic is None and isinstance(partition, TopicIdPartition):
                cached.wanted = cached.wanted._replace(topic=name_of(partition.topic_id))

    def select(self, found: Mapping[FetchKey, Found]) -> dict[FetchKey, Found]:
        """What there is to tell."""
        told = {}
        for partition, what in found.items():
            if self.partitions[partition].takes(what):
                told[partition] = what
                self.partitions[partition] = self.partitions.pop(partition)
        return told


class FetchContext:
    """One fetch: which partitions it is for, and how it is answered. This one has no session."""

    def __init__(self, wanted: Mapping[FetchKey, Wanted]) -> None:
        self.wanted = wanted

    def answer(self, found: Mapping[FetchKey, Found]) -> SessionAnswer:
        return SessionAnswer(ErrorCode.NONE, NO_SESSION, found)

    def answer_nothing(self) -> SessionAnswer:
        """Its client has to wait: nothing is told, and a session stays where it was."""
        return self.answer({})


class _Refused(FetchContext):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__({})
        self._error = error

    def answer(self, found: Mapping[FetchKey, Found]) -> SessionAnswer:
        return SessionAnswer(self._error, NO_SESSION, found)


class _Full(FetchContext):
    """Everything is named; a session may come of it."""

    def __init__(self, sessions: "FetchSessions", wanted: Mapping[FetchKey, Wanted], *, uses_topic_ids: bool) -> None:
        super().__init__(wanted)
        self._sessions = sessions
        self._uses_topic_ids = uses_topic_ids

    def answer(self, found: Mapping[FetchKey, Found]) -> SessionAnswer:
        partitions = {partition: _Cached(self.wanted[partition], what) for partition, what in found.items()}
        session_id = self._sessions.create(partitions, uses_topic_ids=self._uses_topic_ids)
        return SessionAnswer(ErrorCode.NONE, session_id, found)

    def answer_nothing(self) -> SessionAnswer:
        return SessionAnswer(ErrorCode.NONE, NO_SESSION, {})


class _Incremental(FetchContext):
    def __init__(self, session: _Session) -> None:
        super().__init__({partition: cached.wanted for partition, cached in session.partitions.items()})
        self._session = session
        self._epoch = session.epoch

    def answer(self, found: Mapping[FetchKey, Found]) -> SessionAnswer:
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
        wanted: Mapping[FetchKey, Wanted],
        forgotten: Iterable[FetchKey] = (),
        *,
        name_of: NameOf | None = None,
    ) -> FetchContext:
        """What a fetch with this session and epoch is for; one that calls topics by their ids brings `name_of`."""
        uses_topic_ids = name_of is not None
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(session_id, None)
            return FetchContext(wanted) if epoch == FINAL_EPOCH else _Full(self, wanted, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(session_id)
        if session is None:
            return _Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return _Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return _Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(wanted, forgotten)
        if not session.partitions:
            del self._sessions[session_id]
            return FetchContext(wanted)
        if name_of is not None:
            session.name_topics(name_of)
        self._touch(session)
        session.epoch = next_epoch(session.epoch)
        return _Incremental(session)

    def create(self, partitions: dict[FetchKey, _Cached], *, uses_topic_ids: bool) -> int:
        """A session for these, if there is room or can be made; its id."""
        now_ms = self._clock.monotonic_ms()
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), now_ms):
            return NO_SESSION
        session_id = random.randrange(1, _LAST_EPOCH)
        while session_id in self._sessions:
            session_id = random.randrange(1, _LAST_EPOCH)
        self._sessions[session_id] = _Session(session_id, partitions, now_ms, uses_topic_ids=uses_topic_ids)
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
