"""Commits that stand in the log and wait for the disk.

There are many of them at a time, and most wait for a moment only. So each is one object that knows everything which has
to happen when it is safe, and all of them share one timer: they wait equally long, so the first is the first to be told
that it takes too long.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kohort.clock import Clock
from kohort.errors import ErrorCode
from kohort.group.answers import Answers
from kohort.group.delayed import Timer, Timers
from kohort.group.metrics import Meter
from kohort.group.offsets_log import commit_error
from kohort.group.states import GroupState
from kohort.group.written_commits import WrittenCommits

if TYPE_CHECKING:
    from kohort.group.group_metadata import GroupMetadata


class WaitingCommits:
    """Plain commits of one request, and who is told what has become of them."""

    __slots__ = ("_answers", "_group", "_meter", "_respond", "commits", "deadline_ms", "position")

    def __init__(
        self,
        group: "GroupMetadata",
        commits: WrittenCommits,
        meter: Meter,
        answers: Answers,
        respond: Callable[[ErrorCode], None],
    ) -> None:
        self._group = group
        self.commits = commits
        self._meter = meter
        self._answers = answers
        self._respond: Callable[[ErrorCode], None] | None = respond
        self.position = -1
        """Where they begin in the log."""
        self.deadline_ms = 0

    @property
    def is_answered(self) -> bool:
        return self._respond is None

    def settle(self, error: ErrorCode) -> None:
        """They are safe, or never will be."""
        offsets, commits = self._group.offsets, self.commits
        if not self._group.is_(GroupState.DEAD):
            if error is ErrorCode.NONE:
                offsets.on_commit_append(commits, self.position)
            else:
                offsets.fail_pending_commit(commits)
        if error is ErrorCode.NONE:
            self._meter.record(len(commits))
        self.answer(commit_error(error))

    def answer(self, error: ErrorCode) -> None:
        """Only the first answer is given."""
        respond, self._respond = self._respond, None
        if respond is not None:
            self._answers.give(respond, error)


class CommitTimeouts:
    """Answers those that wait for too long, in the order in which they came."""

    def __init__(self, clock: Clock, timers: Timers, timeout_ms: int) -> None:
        self._clock = clock
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._waiting: deque[WaitingCommits] = deque()
        self._timer = Timer(self._look)

    def add(self, commits: WaitingCommits) -> None:
        waiting = self._waiting
        while waiting and waiting[0].is_answered:
            waiting.popleft()
        commits.deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        waiting.append(commits)
        if self._timer.is_idle:
            self._timers.schedule(self._timer, self._timeout_ms)

    def _look(self) -> None:
        now_ms, waiting = self._clock.monotonic_ms(), self._waiting
        while waiting and (waiting[0].is_answered or waiting[0].deadline_ms < now_ms):
            waiting.popleft().answer(ErrorCode.REQUEST_TIMED_OUT)
        if waiting:
            self._timers.schedule(self._timer, waiting[0].deadline_ms - now_ms)
