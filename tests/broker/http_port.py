"""The HTTP port of a running broker, and a plain way to ask it."""

import asyncio
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kohort.broker.http.port import HttpPort
from tests.broker.running import Running

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Http:
    """A port that answers."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        request = urllib.request.Request(self.url + path.lstrip("/"), method=method, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def group(self, group_id: str) -> Any:
        """Everything about one group."""
        answer = self.get("/groups.json?" + urllib.parse.urlencode({"group": group_id}))
        assert answer.status == 200, answer
        (group,) = answer.json["groups"]
        return group

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """Every sample by its name and its labels."""
        families = text_string_to_metric_families(self.get("/metrics").body.decode())
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics()[name, frozenset(labels.items())]


@contextmanager
def http_of(broker: Running, host: str = "127.0.0.1", *, context: ssl.SSLContext | None = None) -> Iterator[Http]:
    """Opened in the broker's own thread, and closed there."""
    port = HttpPort(broker.server)
    opening = port.listen(host, 0, context=context)
    number = asyncio.run_coroutine_threadsafe(opening, broker.loop).result(_PATIENCE_S)
    try:
        yield Http(number)
    finally:
        asyncio.run_coroutine_threadsafe(port.close(), broker.loop).result(_PATIENCE_S)
