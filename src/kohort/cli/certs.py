"""`kohort certs`: certificates for development, and the settings that go with them.

A directory is an authority: `ca.crt` and `ca.key`. What it certifies is a file with a key and the certificate for it,
as `ssl.keystore.location` takes it. Whoever has a key can take on its name: nobody but its owner can read those files.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from kohort.errors import KohortError

_FILE_NAME = re.compile(r"[A-Za-z0-9._@+-]+")
_DAYS = click.IntRange(min=1, max=36_500)

_days_option = click.option("--days", type=_DAYS, default=365, show_default=True, help="How long it counts.")
_ca_option = click.option(
    "--ca",
    "authority",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory of kohort certs ca.",
)


class _Taken(KohortError):
    """A file that is there already: it may be in use."""


@click.group()
def certs() -> None:
    """Certificates for development: an authority, brokers, clients.

    \b
    Examples:
      kohort certs ca --out certs
      kohort certs server --ca certs --host localhost --host 127.0.0.1
      kohort certs client --ca certs --name alice
    """


@certs.command("ca")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="A directory for it.")
@click.option("--name", default="kohort development CA", show_default=True, help="How it is called.")
@_days_option
def ca(out: Path, name: str, days: int) -> None:
    """An authority of your own, which brokers and clients trust.

    \b
    Examples:
      kohort certs ca --out certs
    """
    from kohort.admin.certificates import make_authority

    made = make_authority(name, days)
    _write({out / "ca.crt": made.certificate, out / "ca.key": made.key})
    _tell(
        f"{out / 'ca.crt'} is what clients trust, {out / 'ca.key'} what certifies: keep it to yourself.",
        "",
        "# clients (Java, kafka-python's ssl_cafile and librdkafka's ssl.ca.location name the same file)",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={(out / 'ca.crt').absolute()}",
    )


@certs.command("server")
@_ca_option
@click.option("--host", "hosts", multiple=True, required=True, help="A name or an address of the broker; repeatable.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: server.pem beside the CA]"
)
@_days_option
def server(authority: Path, hosts: tuple[str, ...], out: Path | None, days: int) -> None:
    """A key and a certificate for a broker, under every name that clients use for it.

    \b
    Examples:
      kohort certs server --ca certs --host localhost --host 127.0.0.1
      kohort certs server --ca certs --host broker.example.com --out broker.pem
    """
    from kohort.admin.certificates import Issued, certify_server

    made = certify_server(Issued(*_authority(authority)), hosts, days)
    out = out or authority / "server.pem"
    _write({out: made.key + made.certificate})
    _tell(
        f"{out} has the broker's key and certificate.",
        "",
        "# kohort serve --config; clients are told by their certificates with the second half",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={out.absolute()}",
        "#ssl.client.auth=required",
        "#ssl.truststore.type=PEM",
        f"#ssl.truststore.location={(authority / 'ca.crt').absolute()}",
    )


@certs.command("client")
@_ca_option
@click.option("--name", required=True, help="How the broker is to know it: User:CN=NAME.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: NAME.pem beside the CA]"
)
@_days_option
def client(authority: Path, name: str, out: Path | None, days: int) -> None:
    """A key and a certificate for a client, which tell the broker who it is.

    \b
    Examples:
      kohort certs client --ca certs --name alice
    """
    from kohort.admin.certificates import Issued, certify_client

    if out is None and (not _FILE_NAME.fullmatch(name) or name.startswith(".")):
        raise click.UsageError(f"--name {name!r} is no name for a file: give one with --out")
    made = certify_client(Issued(*_authority(authority)), name, days)
    out = out or authority / f"{name}.pem"
    _write({out: made.key + made.certificate})
    trusted = (authority / "ca.crt").absolute()
    _tell(
        f"{out} has the key and certificate of User:CN={name}.",
        "",
        "# Java, and the --command-config of kohort's own commands",
        "security.protocol=SSL",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={trusted}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={out.absolute()}",
        "",
        "# librdkafka",
        "security.protocol=SSL",
        f"ssl.ca.location={trusted}",
        f"ssl.certificate.location={out.absolute()}",
        f"ssl.key.location={out.absolute()}",
    )


def _authority(directory: Path) -> Iterator[str]:
    for name in ("ca.crt", "ca.key"):
        yield (directory / name).read_text(encoding="ascii", errors="replace")


def _write(files: dict[Path, str]) -> None:
    """All or none, and never over what is there. Nobody else may read them, but what everybody may have."""
    for path in files:
        if path.exists():
            raise _Taken(f"{path} is there already; remove it, or give another place with --out")
    for path, text in files.items():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = 0o644 if "PRIVATE KEY" not in text else 0o600
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="ascii") as file:
            file.write(text)


def _tell(*lines: str) -> None:
    click.echo("\n".join(lines))
