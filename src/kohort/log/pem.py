"""Certificates and keys in PEM, for whoever connects and for whoever is connected to.

OpenSSL takes a key from a file only. Where it stands elsewhere a file is made that nobody else can read, and that is
gone at once.
"""

import os
import ssl
import tempfile
from pathlib import Path

from kohort.errors import KohortError

_BEGIN = "-----BEGIN "


class NotPem(KohortError):
    """A file that cannot be read, or has nothing in PEM in it; the text says why, and not which it is."""


def read_pem(location: str) -> str:
    """What a file of certificates and keys holds."""
    try:
        text = Path(location).read_bytes().decode("ascii", "replace")
    except OSError as error:
        raise NotPem(f"{location}: {error.strerror}") from None
    if _BEGIN not in text:
        raise NotPem(f"{location}: is not PEM, which openssl makes of other stores")
    return text


def load_certificate(context: ssl.SSLContext, certificate: str, key: str | None, password: str | None) -> None:
    """Show this certificate from now on; `SSLError` or `ValueError` if it cannot be used."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{key or ''}\n{certificate}\n")
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(path, password=password or "")
    finally:
        os.unlink(path)


def reason_of(error: ssl.SSLError | ValueError) -> str:
    """Why OpenSSL could not use it, without what it was."""
    return getattr(error, "reason", None) or "not PEM, or not with this password"
