"""Answers that leave when the work is done.

In the middle of a rebalance a group is not whole: a member is out of it but the rebalance that this means has not
begun. Whoever were answered then and asked again at once would meet a group that cannot be. So answers are collected
while something is done to groups and given when it is finished, in their order and never one inside of another.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


class Answers:
    """Used as a context around all that is done to groups; contexts may be nested, the outermost one counts."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_giving = False
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def are_kept(self) -> bool:
        """Whether an answer would have to wait now."""
        return self._depth > 0 or self._is_giving

    def when_done(self, respond: Callable[[T], None]) -> Callable[[T], None]:
        """A callback for those who do not know when they may give the answer."""
        return partial(self.give, respond)

    def give(self, respond: Callable[[T], None], answer: T) -> None:
        """At once, or when the work is done."""
        if self.are_kept:
            self._waiting.append(partial(respond, answer))
        else:
            respond(answer)

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth or self._is_giving:
            return
        self._is_giving = True
        try:
            self._give_all()
        finally:
            self._is_giving = False

    def _give_all(self) -> None:
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            if self._waiting:
                self._give_all()  # one of them failed: that is no reason for the others to go without theirs
