"""Where the story is played: a broker on a free port with its data on disk, and a thread with all clients.

The broker's clock is wound by the story. When that is over it goes on at the pace of the machine's, so that the broker
is one like any other.
"""

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.clock import SystemClock
from kohort.demo.shop import SETTINGS, Shop, StoryFailed, Tell
from kohort.demo.story import SPAN_MINUTES, play
from kohort.errors import KohortError
from kohort.testing import Broker

_MINUTE_MS = 60_000
_TICK_S = 0.25


class Stage:
    """The broker runs from `with` on; at the end of the block nothing does."""

    def __init__(self, data: Path, tell: Tell) -> None:
        self._broker = Broker(data, settings=SETTINGS, clock="virtual", http=True)
        self._tell = tell
        self._told: Future[None] = Future()
        self._life: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: KohortError | None = None
        self._is_business = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kohort-demo", daemon=True)

    def __enter__(self) -> Self:
        now = self._broker.clock.now_ms()
        self._broker.clock.jump(-SPAN_MINUTES * _MINUTE_MS - now % _MINUTE_MS)
        self._broker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        loop, life = self._loop, self._life
        if loop is not None and life is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(life.cancel)
        if self._thread.ident is not None:
            self._thread.join()
        self._broker.stop()

    def begin(self) -> None:
        """The story, in a thread of its own."""
        self._thread.start()

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers

    @property
    def http_url(self) -> str:
        return self._broker.http_url

    @property
    def is_told(self) -> bool:
        """Whether the story is over, and everything went as it should."""
        return self._told.done() and not self._told.cancelled() and self._told.exception() is None

    def wait(self) -> None:
        """Until the story is told."""
        self._told.result()

    def go_on(self) -> None:
        """The shop stays open, at the machine's pace."""
        self._is_business.set()

    def wait_for_end(self) -> None:
        """That comes only if something fails."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    # In the thread of the clients

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._live())

    async def _live(self) -> None:
        self._loop, self._life = asyncio.get_running_loop(), asyncio.current_task()
        shop = Shop(self._broker, self._tell)
        try:
            await play(shop)
            self._broker.clock.jump(SystemClock().now_ms() - self._broker.clock.now_ms())
            self._told.set_result(None)
            await self._tick(shop)
        except TimeoutError:
            self._fail(StoryFailed("the story came to a halt: a client waits for something that does not happen"))
        except KohortError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whoever waits hears of it, whatever it is
            self._fail(StoryFailed(f"{type(error).__name__}: {error}"))
        finally:
            await shop.close()

    def _fail(self, failure: KohortError) -> None:
        self._failure = failure
        if not self._told.done():
            self._told.set_exception(failure)

    async def _tick(self, shop: Shop) -> None:
        """A second a second; in each of them a minute's orders, if the shop is open."""
        ticks = 0
        while True:
            await asyncio.sleep(_TICK_S)
            await shop.wind(round(_TICK_S * 1000))
            ticks += 1
            if self._is_business.is_set() and ticks % 4 == 0:
                await shop.sell()
                await shop.business()
