"""The short way of an OffsetCommit: not read value by value, but turned into what the log and the client get.

The compiled code behind it (`commit_transcoder.py`) costs time and memory to load, so a broker starts without it. When
enough commits have come it is loaded in the background, and from then on it takes those that are plain. The first time
on a machine it must be compiled, which takes seconds; another process does that and leaves the result on the disk, for
a thread that computes would hold up everybody else in this one.
"""

import logging
import os
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from kohort.config import GroupConfig
from kohort.group.records import GroupRecords

if TYPE_CHECKING:
    from kohort.broker.commit_transcoder import CommitTranscoder

logger = logging.getLogger(__name__)

_MODULE = "kohort.broker.commit_transcoder"
_COMPILED = "compiled_commits.py"
_COMMITS_BEFORE = 200
"""A test commits a few times, a load without end: whoever has come so far is likely to go on."""
_COMPILATION_TIMEOUT_S = 300
_SHORT_TURN_S = 0.0005
"""How long the loading thread may keep the others waiting at a time."""


class ShortWay:
    """Is open when its price is worth paying, and possible with the settings of the broker."""

    def __init__(self, config: GroupConfig) -> None:
        self._most_metadata = config.offset_metadata_max_bytes
        self._is_possible = GroupRecords(config).writes_plain_commits
        self._commits = 0
        self.transcoder: CommitTranscoder | None = None
        """Set by another thread, once, when it is ready."""

    def count(self) -> None:
        """A commit has gone the long way."""
        self._commits += 1
        if self._commits == _COMMITS_BEFORE and self._is_possible:
            threading.Thread(target=self._open, name="kohort-short-way", daemon=True).start()

    def _open(self) -> None:
        began = perf_counter()
        if not _is_compiled():
            _compile_elsewhere()
        self.open()
        logger.info("commits take the short way now; to open it took %.1f s", perf_counter() - began)

    def open(self) -> None:
        """Load the compiled code now."""
        turn = sys.getswitchinterval()
        sys.setswitchinterval(_SHORT_TURN_S)
        try:
            self.transcoder = import_module(_MODULE).CommitTranscoder(self._most_metadata)
        finally:
            sys.setswitchinterval(turn)


def _is_compiled() -> bool:
    """Whether compiled code lies where it is kept as a rule. If it does not fit any more, this process will see."""
    source = Path(__file__).with_name(_COMPILED)
    kept = source.parent.glob(f"__pycache__/{source.stem}.*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


def _compile_elsewhere() -> None:
    """Have the code compiled by another process. If that fails, this process will have to do it."""
    command = [sys.executable, "-c", f"import {_MODULE}"]
    path = os.pathsep.join(filter(None, sys.path))
    try:
        subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_COMPILATION_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as failure:
        logger.warning("the compiled way of commits could not be prepared by another process: %s", failure)
