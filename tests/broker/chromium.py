"""A real browser without a window, driven through its DevTools protocol.

Tests that need it are skipped where there is none, and say so; in CI, which installs it, they fail.
"""

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and "CI" not in os.environ,
    reason="NO PAGE IS LOOKED AT: there is neither Chromium nor Chrome on the PATH",
)

_PATIENCE_S = 60.0
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
    "about:blank",
)


class ScriptFailed(Exception):
    """What was evaluated in a page has thrown."""


class Page:
    """One tab."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse", session_id: str) -> None:
        self._socket = socket
        self._session_id = session_id
        self._calls = 0
        self.events: list[dict[str, Any]] = []
        """Everything that the browser told without being asked, as far as it was read."""

    async def call(self, method: str, **parameters: Any) -> Any:
        self._calls += 1
        message = {"id": self._calls, "sessionId": self._session_id, "method": method, "params": parameters}
        await self._socket.send_str(json.dumps(message))
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                told = json.loads(await self._socket.receive_str())
                if told.get("id") != self._calls:
                    self.events.append(told)
                elif "error" in told:
                    raise ScriptFailed(told["error"]["message"])
                else:
                    return told["result"]

    async def open(self, url: str, **features: str) -> None:
        """Go there, with media features such as `prefers-color-scheme`."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        if features:
            wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
            await self.call("Emulation.setEmulatedMedia", features=wanted)
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(_PATIENCE_S):
            while not self.told("Page.loadEventFired"):
                self.events.append(json.loads(await self._socket.receive_str()))

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression; of what it promises, if it is a promise."""
        told = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise ScriptFailed(json.dumps(told["exceptionDetails"]))
        return told["result"].get("value")

    async def until(self, condition: str) -> None:
        """Come back when the condition holds; it is looked at whenever the page is painted."""
        look = f"const look = () => ({condition}) ? told() : requestAnimationFrame(look); look();"
        await self.evaluate(f"new Promise(told => {{ {look} }})")

    def told(self, method: str) -> list[dict[str, Any]]:
        """What came with one kind of event."""
        return [event["params"] for event in self.events if event.get("method") == method]


@asynccontextmanager
async def new_page(*, width: int = 1280, height: int = 800) -> AsyncIterator[Page]:
    """A browser with one tab."""
    assert CHROMIUM is not None, "there is neither Chromium nor Chrome on the PATH"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            *_FLAGS,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(_PATIENCE_S):
                address = await _debugger(process.stderr)
            rest = asyncio.create_task(process.stderr.read())
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
                target = await _ask_browser(socket, "Target.createTarget", url="about:blank")
                attached = await _ask_browser(
                    socket, "Target.attachToTarget", targetId=target["targetId"], flatten=True
                )
                yield Page(socket, attached["sessionId"])
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()
        await rest


async def _debugger(stderr: asyncio.StreamReader) -> str:
    while line := await stderr.readline():
        if found := re.search(rb"DevTools listening on (ws://\S+)", line):
            return found[1].decode()
    raise RuntimeError("the browser has ended before it could be driven")


async def _ask_browser(socket: "aiohttp.ClientWebSocketResponse", method: str, **parameters: Any) -> Any:
    """Something that is about the browser and not about a tab."""
    await socket.send_str(json.dumps({"id": 0, "method": method, "params": parameters}))
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            told = json.loads(await socket.receive_str())
            if told.get("id") == 0:
                return told["result"]
