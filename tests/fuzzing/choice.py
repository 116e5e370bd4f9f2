"""Of many inputs the few that are worth keeping: the smallest that together go every way through our code."""

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import kohort
from tests.fuzzing.target import Target

_OURS = str(Path(kohort.__file__).parent)

Step = tuple[str, int, int]
"""From one line of a file to another."""


class _Ways:
    """Notes the steps that are taken, for `sys.settrace`."""

    def __init__(self) -> None:
        self.steps: set[Step] = set()

    def call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS):
            return None
        before = 0

        def step(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal before
            if event == "line":
                self.steps.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return step

        return step


def steps_of(target: Target, data: bytes) -> set[Step]:
    """The ways that an input takes when nothing is done for the first time any more."""
    target.run(data)
    ways = _Ways()
    traced_before = sys.gettrace()
    sys.settrace(ways.call)
    try:
        target.run(data)
    finally:
        sys.settrace(traced_before)
    return ways.steps


def choose(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """Each takes a step that no shorter one has taken."""
    seen: set[Step] = set()
    chosen = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        steps = steps_of(target, data)
        if not steps <= seen:
            seen |= steps
            chosen.append(data)
    return chosen
