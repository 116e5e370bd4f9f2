"""`kohort serve`: the broker."""

import asyncio
import contextlib
import gc
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kohort.broker.broker import Broker
from kohort.broker.server import Server
from kohort.broker.settings import BrokerConfig, with_settings
from kohort.cli.log_lines import log_to_stderr
from kohort.cli.open_files import raise_open_files_limit
from kohort.clock import SystemClock
from kohort.config import FlushMode
from kohort.errors import KohortError, StorageFailed
from kohort.log.files import Files, RealFiles
from kohort.log.simulated_files import SimulatedFiles

if TYPE_CHECKING:
    from kohort.broker.http.port import HttpPort


_LARGE_BLOCK = 16 * 1024 * 1024


class _Address(NamedTuple):
    host: str
    port: int


@click.command()
@click.option("--listen", default="127.0.0.1:9092", show_default=True, help="Where clients connect; port 0: any.")
@click.option("--data", type=click.Path(path_type=Path), help="Where topics are kept.")
@click.option("--memory", is_flag=True, help="Keep nothing: everything is gone with the process.")
@click.option("--http", metavar="HOST:PORT", help="Where metrics, health and the live page are; port 0: any.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting, under its Kafka name.")
@click.option("--config", "config_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Settings.")
@click.option("--verbose", is_flag=True, help="Tell what happens, on stderr.")
def serve(
    listen: str,
    data: Path | None,
    memory: bool,
    http: str | None,
    settings: tuple[str, ...],
    config_file: Path | None,
    verbose: bool,
) -> None:
    """A broker that Kafka clients connect to.

    When it is ready it prints one line: `kohort ready kafka=HOST:PORT http=HOST:PORT data=DIR`, without `http=` if
    there is none. SIGTERM or Ctrl-C ends it.

    \b
    Examples:
      kohort serve --memory
      kohort serve --data broker --http 127.0.0.1:9644
      kohort serve --memory --listen 127.0.0.1:0 --set group.initial.rebalance.delay.ms=0
    """
    if memory == (data is not None):
        raise click.UsageError("give either --data or --memory")
    log_to_stderr(logging.INFO if verbose else logging.ERROR)
    raise_open_files_limit()
    host, port = _address("--listen", listen)
    http_address = None if http is None else _address("--http", http)
    given = _file_settings(config_file) | dict(_setting(text) for text in settings)
    flush_mode = FlushMode.OS if memory else FlushMode.ALWAYS
    place = "/memory" if data is None else str(data.absolute())
    config = BrokerConfig(host=host, port=port, data=place, log_flush_mode=flush_mode)
    files: Files = SimulatedFiles() if memory else RealFiles()
    _run(with_settings(config, given), files, "memory" if memory else str(data), http_address)


def _address(option: str, text: str) -> _Address:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise click.UsageError(f"{option} wants HOST:PORT, not {text!r}")
    return _Address(host, int(port))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set wants NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _file_settings(path: Path | None) -> dict[str, str]:
    """Java's properties, as far as anybody writes them in Kafka's files."""
    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise KohortError(f"{path}: is not text") from None
    lines = (line.strip() for line in text.splitlines())
    return dict(_setting(line) for line in lines if line and not line.startswith(("#", "!")))


def _run(config: BrokerConfig, files: Files, place: str, http_address: _Address | None) -> None:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        failure = asyncio.run(_serve(config, files, place, http_address))
    else:
        failure = uvloop.run(_serve(config, files, place, http_address))
    if failure is not None:
        raise failure


async def _serve(config: BrokerConfig, files: Files, place: str, http_address: _Address | None) -> KohortError | None:
    loop = asyncio.get_running_loop()
    end: asyncio.Future[StorageFailed | None] = loop.create_future()

    def stop(failure: StorageFailed | None = None) -> None:
        if not end.done():
            end.set_result(failure)

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)
    broker = Broker(config, files, SystemClock(), loop, on_failure=stop)
    server = Server(broker, loop)
    http: HttpPort | None = None
    try:
        port = await server.listen(config.host, config.port)
        ready = f"kohort ready kafka={config.host}:{port}"
        if http_address is not None:
            http, http_port = await _open_http(server, http_address)
            ready += f" http={http_address.host}:{http_port}"
        broker.start(port)
        _settle_memory()
        click.echo(f"{ready} data={place}")
        return await end
    finally:
        if http is not None:
            await http.close()
        broker.stop()
        await server.close()


def _settle_memory() -> None:
    """What is there now stays: the garbage collector need not look at it again and again, nor often at what comes.

    And a large block that is freed once tells the C library to keep such blocks instead of asking the system for each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    bytearray(_LARGE_BLOCK)


async def _open_http(server: Server, address: _Address) -> tuple["HttpPort", int]:
    from kohort.broker.http.port import HttpPort  # not needed by a broker without it, and large

    http = HttpPort(server)
    return http, await http.listen(address.host.strip("[]"), address.port)
