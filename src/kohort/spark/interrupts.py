"""Ctrl-C while Spark works.

py4j does not bear an interruption between a question and its answer: the connection is lost, tracebacks are printed,
and Spark goes on with what it was asked for. So a signal that comes then has the jobs cancelled, and comes again a
little later, until it meets Python at something else.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from py4j.protocol import Py4JError
from pyspark import SparkContext

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_S = 0.2


@contextlib.contextmanager
def interrupts_between_calls() -> Iterator[Callable[[], None]]:
    """Ctrl-C, and SIGTERM where somebody listens to it, are KeyboardInterrupt, but never inside of py4j.

    Gives what to call as soon as there is a SparkContext: it has put a handler of its own there. Only the main thread
    hears signals in any case.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    interrupts = _Interrupts()

    def listen() -> None:
        for number in before:
            signal.signal(number, interrupts.hear)

    listen()
    try:
        yield listen
    finally:
        is_left_over = interrupts.close()
        for number, handler in before.items():
            if signal.getsignal(number) == interrupts.hear:  # else somebody wants it otherwise for the end
                signal.signal(number, handler)
        if is_left_over:
            raise KeyboardInterrupt


class _Interrupts:
    def __init__(self) -> None:
        self._is_done = threading.Event()
        self._again: threading.Thread | None = None
        self._is_sent_again = False
        self._is_closed = self._is_left_over = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        is_again, self._is_sent_again = self._is_sent_again, False
        if is_again and self._is_done.is_set():
            return
        if self._is_closed:
            self._is_left_over = True
        elif not _is_in_py4j(frame):
            self._is_done.set()
            raise KeyboardInterrupt
        elif self._again is None or self._is_done.is_set():
            self._is_done = threading.Event()
            self._again = threading.Thread(target=self._send_again, args=(number, self._is_done), daemon=True)
            self._again.start()

    def _send_again(self, number: int, is_done: threading.Event) -> None:
        while not is_done.is_set():
            java = getattr(SparkContext._active_spark_context, "_jsc", None)
            if java is not None:
                with contextlib.suppress(Py4JError):  # it has just stopped: there is nothing left to cancel
                    java.sc().cancelAllJobs()
            if not is_done.wait(_AGAIN_S):
                self._is_sent_again = True
                signal.pthread_kill(_main_thread(), number)

    def close(self) -> bool:
        """Whether somebody has asked for an end, and has not got it so far. Nothing comes later."""
        self._is_closed = True
        is_waiting = self._again is not None and not self._is_done.is_set()
        self._is_done.set()
        if self._again is not None:
            self._again.join()
        return is_waiting or self._is_left_over


def _main_thread() -> int:
    ident = threading.main_thread().ident
    assert ident is not None
    return ident


def _is_in_py4j(frame: FrameType | None) -> bool:
    """Whether Python waits for Java, or for a Java that is being started: it could not be ended yet."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "pyspark.java_gateway" or module.partition(".")[0] == "py4j":
            return True
        frame = frame.f_back
    return False
