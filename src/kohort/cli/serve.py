"""`kohort serve`: the broker."""

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kohort.broker.broker import Broker
from kohort.broker.security.listener_settings import PLAINTEXT, is_secret
from kohort.broker.security.listeners import Listener, parse_address
from kohort.broker.security.tls import Tls
from kohort.broker.security.warnings import warnings_of
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.broker.storage import Storage
from kohort.cli.local_values import is_reference, resolved
from kohort.cli.log_lines import log_to_stderr
from kohort.cli.open_files import raise_open_files_limit
from kohort.cli.output import one_line, shortened
from kohort.clock import SystemClock
from kohort.config import FlushMode
from kohort.errors import KohortError, StorageFailed
from kohort.log.files import Files, RealFiles
from kohort.log.security import read_properties
from kohort.log.simulated_files import SimulatedFiles

if TYPE_CHECKING:
    from kohort.broker.http.port import HttpPort
    from kohort.cli.store import OwnedStore

End = asyncio.Future[StorageFailed | None]
Stop = Callable[[StorageFailed | None], None]

_LARGE_BLOCK = 16 * 1024 * 1024
_DEFAULT = "127.0.0.1:9092"
_LAST_PORT = 65_535


class _HttpAddress(NamedTuple):
    has_tls: bool
    host: str
    port: int


class _Home(NamedTuple):
    """Where the broker keeps what it has."""

    files: Files
    place: str
    """As people are told."""
    store: "OwnedStore | None" = None

    @property
    def storage(self) -> Storage | None:
        return None if self.store is None else self.store.storage


@click.command()
@click.option(
    "--listen",
    "listen",
    multiple=True,
    metavar="[PROTOCOL://]HOST:PORT",
    help=f"Where clients connect; port 0: any. May be given several times.  [default: {_DEFAULT}]",
)
@click.option("--data", type=click.Path(path_type=Path), help="Where topics are kept.")
@click.option(
    "--store",
    metavar="URL",
    help="Keep topics in a PostgreSQL database: postgresql://USER@HOST:PORT/DATABASE. See docs/store.md.",
)
@click.option("--memory", is_flag=True, help="Keep nothing: everything is gone with the process.")
@click.option(
    "--http",
    metavar="[https://]HOST:PORT",
    help="Where metrics, health and the live page are; port 0: any. https shows the certificate of ssl.keystore.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting, under its Kafka name.")
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Settings.")
@click.option("--verbose", is_flag=True, help="Tell what happens, on stderr.")
def serve(
    listen: tuple[str, ...],
    data: Path | None,
    store: str | None,
    memory: bool,
    http: str | None,
    settings: tuple[str, ...],
    config_file: Path | None,
    verbose: bool,
) -> None:
    """A broker that Kafka clients connect to.

    When it is ready it prints one line: `kohort ready kafka=HOST:PORT http=HOST:PORT data=DIR`, without `http=` if
    there is none. SIGTERM or Ctrl-C ends it, SIGHUP makes it read its certificates again.

    A setting that is a secret does not belong on the command line, where everybody sees it, but into the file of
    --config, or where that refers to: ${env:NAME}, ${file:PATH:NAME} in a file of properties, ${dir:PATH:NAME}.

    \b
    Examples:
      kohort serve --memory
      kohort serve --data broker --http 127.0.0.1:9644
      kohort serve --data broker --listen 127.0.0.1:9092 --listen SASL_SSL://0.0.0.0:9093 --config broker.properties
      kohort serve --memory --listen 127.0.0.1:0 --set group.initial.rebalance.delay.ms=0
      kohort serve --store postgresql://kohort@db.example.com/kohort
    """
    if memory + (data is not None) + (store is not None) != 1:
        raise click.UsageError("give either --data, --store or --memory")
    log_to_stderr(logging.INFO if verbose else logging.ERROR)
    raise_open_files_limit()
    http_address = None if http is None else _http_address(http)
    given = resolved(({} if config_file is None else read_properties(config_file)) | _settings(settings))
    if listen or "listeners" not in given:
        given["listeners"] = ",".join(_listener(text) for text in listen or [_DEFAULT])
    flush_mode = FlushMode.OS if memory else FlushMode.ALWAYS
    place = "/memory" if data is None else str(data.absolute())
    config = with_settings(BrokerConfig(data=place, log_flush_mode=flush_mode), given)
    if data is not None:
        _warn_if_readable(data)
    if store is not None:
        if config.log_flush_mode is not FlushMode.ALWAYS:
            raise click.UsageError("--store keeps what is acknowledged: log.flush.mode can only be always")
        home = _in_store(store, config)
    else:
        home = _Home(SimulatedFiles(), "memory") if data is None else _Home(RealFiles(), str(data))
    _run(config, home, http_address)


def _in_store(url: str, config: BrokerConfig) -> "_Home":
    try:
        from kohort.cli.store import open_store
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise KohortError("--store needs psycopg: pip install 'kohort[postgresql]'") from None
    store = open_store(url, broker_id=config.broker_id, lease_ms=config.store_lease_ms)
    return _Home(store.files, store.place, store)


def _warn_if_readable(data: Path) -> None:
    """A directory that we make is nobody else's; one that was there may be older than its contents are secret."""
    with contextlib.suppress(OSError):  # whoever cannot look will soon hear why
        mode = data.stat().st_mode & 0o777
        if data.is_dir() and mode & 0o077:
            click.echo(
                f"kohort: warning: {one_line(str(data))} can be entered by others (mode {mode:04o}): chmod 700 keeps "
                "records and credentials to its owner",
                err=True,
            )


def _http_address(text: str) -> _HttpAddress:
    scheme, _, address = text.rpartition("://")
    host, _, port = address.rpartition(":")
    if scheme not in ("", "http", "https") or not host or not (port.isascii() and port.isdecimal()):
        raise click.UsageError(f"--http wants HOST:PORT or https://HOST:PORT, not {text!r}")
    if int(port) > _LAST_PORT:
        raise click.UsageError(f"--http wants a port up to {_LAST_PORT}, not {text!r}")
    return _HttpAddress(scheme == "https", host, int(port))


def _listener(text: str) -> str:
    """As the setting has it; an address alone is for clients that need not show anything."""
    name, separator, address = text.rpartition("://")
    try:
        parse_address(address if name or not separator else "")
    except ValueError:
        raise click.UsageError(f"--listen wants HOST:PORT or PROTOCOL://HOST:PORT, not {text!r}") from None
    if not address.rpartition(":")[0]:
        raise click.UsageError(f"--listen wants a host, which may be 0.0.0.0, not {text!r}")
    return f"{name or PLAINTEXT}://{address}"


def _settings(texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise click.UsageError(f"--set wants NAME=VALUE, not {shortened(text)!r}")
        if is_secret(name) and not is_reference(value):
            raise click.UsageError(
                f"--set {name}: everybody on this machine can read it there; write it into the file of --config, or "
                f"where ${{env:NAME}} or ${{dir:PATH:NAME}} refers to"
            )
        found[name] = value
    return found


def _run(config: BrokerConfig, home: _Home, http_address: _HttpAddress | None) -> None:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        failure = asyncio.run(_serve(config, home, http_address))
    else:
        failure = uvloop.run(_serve(config, home, http_address))
    if failure is not None:
        raise failure


async def _serve(config: BrokerConfig, home: _Home, http_address: _HttpAddress | None) -> KohortError | None:
    loop = asyncio.get_running_loop()
    end: asyncio.Future[StorageFailed | None] = loop.create_future()

    def stop(failure: StorageFailed | None = None) -> None:
        if not end.done():
            end.set_result(failure)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    if home.store is None:
        return await _live(config, home, http_address, end, stop)
    try:
        if await home.store.wait_until_owned(end):
            return await _live(config, home, http_address, end, stop)
        return end.result()
    finally:
        home.store.close()


async def _live(
    config: BrokerConfig, home: _Home, http_address: _HttpAddress | None, end: End, stop: Stop
) -> KohortError | None:
    loop = asyncio.get_running_loop()
    broker = Broker(config, home.files, SystemClock(), loop, on_failure=stop, storage=home.storage)
    server = Server(broker, loop)
    if home.store is not None:
        home.store.attach(server)
    with contextlib.suppress(NotImplementedError, AttributeError):
        loop.add_signal_handler(signal.SIGHUP, server.refresh)
    http: HttpPort | None = None
    try:
        listeners = await server.listen()
        for warning in warnings_of(server.entrances):
            click.echo(f"kohort: warning: {warning}", err=True)
        ready = f"kohort ready kafka={_told(listeners)}"
        if http_address is not None:
            http, http_port = await _open_http(server, http_address)
            ready += f" http={http_address.host}:{http_port}"
        broker.start(listeners[0].address.port)
        _settle_memory()
        click.echo(f"{ready} data={home.place}")
        return await end
    finally:
        if http is not None:
            await http.close()
        if home.store is not None:
            home.store.hurry()
        broker.stop()
        await server.close()


def _told(listeners: Sequence[Listener]) -> str:
    """What a client can connect to. One listener without security has no more than an address."""
    if len(listeners) == 1 and listeners[0].name == PLAINTEXT:
        return str(listeners[0].address)
    return ",".join(map(str, listeners))


def _settle_memory() -> None:
    """What is there now stays: the garbage collector need not look at it again and again, nor often at what comes.

    And a large block that is freed once tells the C library to keep such blocks instead of asking the system for each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    bytearray(_LARGE_BLOCK)


async def _open_http(server: Server, address: _HttpAddress) -> tuple["HttpPort", int]:
    from kohort.broker.http.port import HttpPort  # not needed by a broker without it, and large

    http = HttpPort(server)
    context = Tls("of the HTTP port", server.broker.config.listener).context if address.has_tls else None
    port = await http.listen(address.host.strip("[]"), address.port, context=context)
    if http.asks_for_passwords and not address.has_tls:
        click.echo(
            f"kohort: warning: whoever can listen in on the way to http://{address.host}:{port} reads passwords: "
            "--http https://HOST:PORT hides them",
            err=True,
        )
    return http, port
