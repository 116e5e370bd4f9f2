"""`queued.max.request.bytes`: how many bytes the requests of all connections may have together that are not answered.

What counts is what has come, not what is announced, until it is answered. When it is too much, a connection in the
middle of a request is not read from any further: what its client sends waits with the system, and with the client. One
of them goes on all the same, the one that has waited longest, so that none waits for ever; and requests that are small
enough to come at once are read as ever, so no heartbeat waits. Beside the limit there may be what one read of each
connection brings.

Kafka counts what is announced, and reads from nobody when it is too much: there, who announces and sends nothing keeps
everybody else waiting.
"""

from typing import Protocol


class Reader(Protocol):
    """A connection that waits to be read from again."""

    def on_memory(self) -> None: ...


class RequestMemory:
    """The room that there is, and who waits for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0
        self._waiting: dict[Reader, None] = {}
        self._favoured: Reader | None = None
        self._is_waking = False

    def may_go_on(self, reader: Reader) -> bool:
        """Whether more may be read of a request that has begun; whoever may not is woken later."""
        if self.used < self._most or self._favoured is reader:
            return True
        if self._favoured is None:
            self._favoured = reader
            return True
        self._waiting[reader] = None
        return False

    def change(self, by: int) -> None:
        """Somebody has so much more, or less."""
        self.used += by
        if by < 0 and self._waiting:
            self._wake()

    def done(self, reader: Reader) -> None:
        """Its request is there, or will never be."""
        self._waiting.pop(reader, None)
        if self._favoured is reader:
            self._favoured = None
            self._wake()

    def _wake(self) -> None:
        """The first come first; whoever is woken may go on or wait again."""
        if self._is_waking:
            return
        self._is_waking = True
        try:
            while self._waiting and (self.used < self._most or self._favoured is None):
                reader = next(iter(self._waiting))
                del self._waiting[reader]
                reader.on_memory()
        finally:
            self._is_waking = False


def request_memory(most: int) -> RequestMemory | None:
    """None if there is no limit."""
    return None if most < 0 else RequestMemory(most)
