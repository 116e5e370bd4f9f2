"""How much of something there was a second, measured over the last windows of time, as Kafka measures what it limits.

What is measured falls into windows. A rate is the sum of the last few windows by the time that they cover, which counts
as no less than all of them but one: so a little that comes at once is no high rate.
"""

from collections import deque


class _Window:
    __slots__ = ("amount", "began_ms")

    def __init__(self, began_ms: int, amount: float) -> None:
        self.began_ms = began_ms
        self.amount = amount


class Rate:
    """A rate over `number` windows of `window_ms` each. Whoever asks brings the time, in ms, which never goes back."""

    __slots__ = ("_number", "_window_ms", "_windows")

    def __init__(self, number: int, window_ms: int) -> None:
        self._number = number
        self._window_ms = window_ms
        self._windows: deque[_Window] = deque()

    def record(self, amount: float, now_ms: int) -> None:
        windows = self._windows
        if windows and now_ms - windows[-1].began_ms < self._window_ms:
            windows[-1].amount += amount
            return
        self._forget(now_ms)
        windows.append(_Window(now_ms, amount))

    def per_second(self, now_ms: int) -> float:
        self._forget(now_ms)
        return sum(window.amount for window in self._windows) * 1000 / self._covered_ms(now_ms)

    def delay_ms(self, allowed: float, now_ms: int) -> int:
        """How long nothing more may come until there is no more than allowed a second."""
        rate = self.per_second(now_ms)
        return round((rate - allowed) / allowed * self._covered_ms(now_ms)) if rate > allowed else 0

    def is_over(self, now_ms: int) -> bool:
        """Whether nothing is known any more that counts."""
        self._forget(now_ms)
        return not self._windows

    def _forget(self, now_ms: int) -> None:
        windows, kept_ms = self._windows, self._number * self._window_ms
        while windows and now_ms - windows[0].began_ms >= kept_ms:
            windows.popleft()

    def _covered_ms(self, now_ms: int) -> int:
        elapsed = now_ms - self._windows[0].began_ms if self._windows else 0
        missing = self._number - 1 - elapsed // self._window_ms
        return max(elapsed + max(missing, 0) * self._window_ms, 1)
