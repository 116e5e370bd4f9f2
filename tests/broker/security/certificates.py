"""Certificates for tests, made once: two authorities, and what each of them vouches for."""

import atexit
import ssl
import tempfile
from functools import cache
from pathlib import Path

from kohort.admin.certificates import Issued, certify_client, certify_server, make_authority

HOSTS = ("localhost", "127.0.0.1")


_authority = cache(lambda name: make_authority(f"the authority called {name}", 30))
_server = cache(lambda hosts, by, days: certify_server(authority(by), hosts, days))
_client = cache(lambda name, by, days: certify_client(authority(by), name, days))


def authority(name: str = "ours") -> Issued:
    return _authority(name)


def server(*hosts: str, by: str = "ours", days: int = 30) -> Issued:
    """Of a broker; days below 0 are over."""
    return _server(hosts or HOSTS, by, days)


def client(name: str, *, by: str = "ours", days: int = 30) -> Issued:
    return _client(name, by, days)


def pem(issued: Issued) -> str:
    """Key and certificate in one text."""
    return issued.key + issued.certificate


@cache
def file_of(issued: Issued) -> str:
    """Key and certificate in a file that stays until the tests are over."""
    return _file(pem(issued))


def authority_file(name: str = "ours") -> str:
    return _authority_file(name)


def trusting(name: str = "ours", *, shown: Issued | None = None) -> ssl.SSLContext:
    """How a client trusts an authority, and shows a certificate itself."""
    context = ssl.create_default_context(cadata=authority(name).certificate)
    if shown is not None:
        context.load_cert_chain(file_of(shown))
    return context


_authority_file = cache(lambda name: _file(authority(name).certificate))
_files = tempfile.TemporaryDirectory(prefix="kohort-certificates-")
atexit.register(_files.cleanup)


def _file(text: str) -> str:
    file = tempfile.NamedTemporaryFile("w", dir=_files.name, suffix=".pem", delete=False)  # noqa: SIM115
    with file:
        file.write(text)
    return str(Path(file.name))
