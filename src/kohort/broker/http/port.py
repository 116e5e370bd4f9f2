"""The HTTP port: what is answered on which path, and what no browser may do with it.

It only ever tells; nothing can be changed through it. Off the machine's own address whoever asks has to be one of the
broker's users, or to show a certificate where the port has TLS and wants one; without either the port is not opened
there unless `http.allow.anonymous` says so. Other web sites cannot read what it tells: there is no CORS, and
a port that listens on the machine's own address answers to names of that machine only, so that nobody's DNS can make
a browser take it for his own site.
"""

import asyncio
import ipaddress
import json
import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kohort.broker.http.authentication import BasicAuthentication, TooBusy
from kohort.broker.http.connection import http_connections
from kohort.broker.http.groups import GroupsView
from kohort.broker.http.health import offline_partitions, problems
from kohort.broker.http.metrics import registry_of
from kohort.broker.http.page import load_page
from kohort.broker.http.rebalances import RecentRebalances
from kohort.broker.server import Server
from kohort.errors import KohortError

_CLOSED_WITHIN_S = 1.0
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d*)?")
_HEADERS = {
    "Cache-Control": "no-store",
    "Server": "kohort",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_ASK = {"WWW-Authenticate": 'Basic realm="kohort", charset="UTF-8"'}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NotSafe(KohortError):
    """A port that anybody could ask from anywhere, which nobody has said that he wants."""


class HttpPort:
    """Serves one broker's page, metrics and health."""

    def __init__(self, server: Server) -> None:
        self._broker = server.broker
        self._registry = registry_of(server)
        self._rebalances = RecentRebalances(server.broker.clock)
        self._groups = GroupsView(server.broker, self._rebalances)
        self._page = load_page()
        self._allowed_names: frozenset[str] | None = None
        self._authentication: BasicAuthentication | None = None
        self._listener: asyncio.Server | None = None
        app = web.Application(middlewares=[self._check_name, self._check_user])
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/", self._show_page)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/groups.json", self._groups_json)
        self._runner = web.AppRunner(app, shutdown_timeout=_CLOSED_WITHIN_S)

    async def listen(self, host: str, port: int, *, context: ssl.SSLContext | None = None) -> int:
        """Returns the port, which the system chooses if it is 0. `NotSafe` if anybody could ask from anywhere."""
        is_known_by_certificate = context is not None and context.verify_mode is ssl.CERT_REQUIRED
        if not _is_loopback(host) and not is_known_by_certificate and not self._broker.config.http_allow_anonymous:
            self._authentication = BasicAuthentication(self._broker.users)
            if not self._authentication.has_users:
                raise NotSafe(
                    f"the HTTP port on {host} would tell everything to everybody: add a user, listen on 127.0.0.1, or "
                    "say http.allow.anonymous=true"
                )
        self._broker.groups.metrics.rebalance_listeners.append(self._rebalances.on_rebalance)
        if _is_loopback(host):
            self._allowed_names = frozenset({"localhost", host.lower()})
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        self._listener = await self._broker.loop.create_server(
            http_connections(server, _HEADERS), host, port, ssl=context
        )
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def asks_for_passwords(self) -> bool:
        """Whether whoever asks has to say who he is."""
        return self._authentication is not None

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._authentication is not None:
            self._authentication.close()
        self._broker.groups.metrics.rebalance_listeners.remove(self._rebalances.on_rebalance)
        await self._groups.close()
        await self._runner.cleanup()

    async def _show_page(self, _: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": self._page.policy}
        return web.Response(body=self._page.body, content_type="text/html", charset="utf-8", headers=headers)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthz(self, _: web.Request) -> web.Response:
        """200 if the broker can do its work, else 503 and why not."""
        found = problems(self._broker)
        told: dict[str, Any] = {
            "status": "failed" if found else "ok",
            "cluster_id": self._broker.config.cluster_id,
            "broker_id": self._broker.config.broker_id,
        }
        if found:
            told["reasons"] = found
        if offline := offline_partitions(self._broker):
            told["offline_partitions"] = offline
        return _json_response(json.dumps(told).encode() + b"\n", status=503 if found else 200)

    async def _groups_json(self, request: web.Request) -> web.Response:
        if "group" in request.query:
            body = await self._groups.one(request.query["group"])
            if body is None:
                return _json_response(b'{"error":"there is no such group"}\n', status=404)
        elif request.query.get("view") == "summary":
            body = await self._groups.summary()
        else:
            body = await self._groups.full()
        return _json_response(body)

    @web.middleware
    async def _check_name(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse a browser that was led here under somebody else's name."""
        if not self._is_called_by_name(request.headers.get("Host")):
            return _json_response(b'{"error":"this port does not answer to that name"}\n', status=421)
        return await handler(request)

    @web.middleware
    async def _check_user(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whoever has to say who he is does so with each request; no route is open without."""
        if self._authentication is not None:
            try:
                user = await self._authentication.user_of(request.headers.get("Authorization"))
            except TooBusy:
                return _json_response(b'{"error":"too many passwords are being checked"}\n', status=503)
            if user is None:
                answer = _json_response(b'{"error":"say who you are"}\n', status=401)
                answer.headers.update(_ASK)
                return answer
        return await handler(request)

    def _is_called_by_name(self, host: str | None) -> bool:
        """Who sends no name at all is no browser."""
        if self._allowed_names is None or host is None:
            return True
        found = _HOST.fullmatch(host)
        name = "" if found is None else found[1].strip("[]").lower()
        return name in self._allowed_names or _is_address(name)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers["Server"] = _HEADERS["Server"]


def _json_response(body: bytes, *, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
