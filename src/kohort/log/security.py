"""How to get into a cluster: the settings of Kafka's clients for TLS and SASL, read and checked.

They carry Kafka's names, or librdkafka's where those differ. Certificates are files in PEM, or stand in the settings
themselves. All files are read when the settings are: what comes out can be sent to another machine. Nothing secret is
ever in a message or in what is printed of it.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kohort.errors import KohortError
from kohort.log.pem import NotPem, load_certificate, read_pem, reason_of

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
_PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PEM = "PEM"

SETTINGS = {
    "security.protocol": f"{', '.join(_PROTOCOLS[:-1])} or {_PROTOCOLS[-1]}; {PLAINTEXT} by default",
    "sasl.mechanism": f"{', '.join(_MECHANISMS[:-1])} or {_MECHANISMS[-1]}; sasl.mechanisms is the same",
    "sasl.jaas.config": "a login module with username and password",
    "sasl.username": "the user, instead of sasl.jaas.config",
    "sasl.password": "the password, instead of sasl.jaas.config",
    "ssl.truststore.location": "a PEM file of the authorities that are trusted; ssl.ca.location is the same",
    "ssl.truststore.certificates": "those authorities themselves, in PEM",
    "ssl.truststore.type": "PEM",
    "ssl.keystore.location": "a PEM file with our key and certificate",
    "ssl.keystore.certificate.chain": "our certificate itself, in PEM; ssl.certificate.location names a file",
    "ssl.keystore.key": "our key itself, in PEM; ssl.key.location names a file",
    "ssl.keystore.type": "PEM",
    "ssl.key.password": "the password of our key",
    "ssl.endpoint.identification.algorithm": "https (a certificate must be of the host; the default), or empty",
}
"""The settings that are understood, and what they mean."""

_SAME = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_FILES = {"ssl.certificate.location": "ssl.keystore.certificate.chain", "ssl.key.location": "ssl.keystore.key"}

_LOGIN = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')


class BadSecurity(KohortError):
    """Settings that do not tell how to get into a cluster."""


@dataclass(frozen=True, slots=True)
class Security:
    """What a connection has to have."""

    protocol: str = PLAINTEXT
    mechanism: str = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    authorities: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host: bool = True

    def client_arguments(self) -> dict[str, Any]:
        """What aiokafka's client is to be given."""
        given: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol in (SSL, SASL_SSL):
            given["ssl_context"] = self._context()
        if self.protocol in (SASL_PLAINTEXT, SASL_SSL):
            given |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return given

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname = self.check_host
        try:
            if self.authorities is not None:
                context.load_verify_locations(cadata=self.authorities)
            if self.certificate is not None:
                load_certificate(context, self.certificate, self.key, self.key_password)
        except (ssl.SSLError, ValueError) as error:
            raise BadSecurity(f"the certificates for {self.protocol} cannot be used: {reason_of(error)}") from None
        return context


def parse_security(given: Mapping[str, str]) -> Security:
    """The settings of a client, whatever the case of their names, as `Security`."""
    settings = {name.lower(): value for name, value in given.items()}
    for name in settings:
        if name not in SETTINGS and name not in _SAME and name not in _FILES:
            raise BadSecurity(f"no setting {name!r} of a connection; there are {', '.join(SETTINGS)}")
    for name, same in _SAME.items():
        if name in settings:
            settings.setdefault(same, settings.pop(name))
    for name, same in _FILES.items():
        if name in settings:
            settings.setdefault(same, _pem(name, settings.pop(name)))
    protocol = settings.get("security.protocol", PLAINTEXT).upper()
    if protocol not in _PROTOCOLS:
        raise BadSecurity(f"security.protocol is {protocol!r}, must be {SETTINGS['security.protocol']}")
    mechanism = settings.get("sasl.mechanism", "PLAIN").upper()
    username, password = _login(settings)
    if protocol in (SASL_PLAINTEXT, SASL_SSL):
        if mechanism not in _MECHANISMS:
            raise BadSecurity(f"sasl.mechanism {mechanism!r} is not spoken here: {', '.join(_MECHANISMS)} are")
        if username is None or password is None:
            raise BadSecurity(f"{protocol} needs sasl.jaas.config, or sasl.username and sasl.password")
    certificate, key = settings.get("ssl.keystore.certificate.chain"), settings.get("ssl.keystore.key")
    if store := _store(settings, "keystore"):
        certificate, key = store, key or ""
    return Security(
        protocol=protocol,
        mechanism=mechanism,
        username=username,
        password=password,
        authorities=_store(settings, "truststore") or settings.get("ssl.truststore.certificates"),
        certificate=certificate,
        key=key,
        key_password=settings.get("ssl.key.password"),
        check_host=_checks_host(settings.get("ssl.endpoint.identification.algorithm", "https")),
    )


def read_properties(path: Path) -> dict[str, str]:
    """A file of settings as Kafka's tools take it: name=value in each line, `#` before remarks."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSecurity(f"{path}: {getattr(error, 'strerror', None) or 'is not text'}") from None
    found = {}
    for number, line in enumerate(text.replace("\\\n", "").splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not name or name[0] in "#!":
            continue
        if not equals:
            raise BadSecurity(f"{path}, line {number}: expected name=value")
        found[name.strip()] = value.strip().replace("\\n", "\n")
    return found


def _login(settings: Mapping[str, str]) -> tuple[str | None, str | None]:
    told = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _LOGIN.findall(settings.get("sasl.jaas.config", ""))
    }
    return told.get("username", settings.get("sasl.username")), told.get("password", settings.get("sasl.password"))


def _store(settings: Mapping[str, str], kind: str) -> str | None:
    location = settings.get(f"ssl.{kind}.location")
    if location is None:
        return None
    type_ = settings.get(f"ssl.{kind}.type", _PEM).upper()
    if type_ != _PEM:
        raise BadSecurity(f"ssl.{kind}.type is {type_}; only {_PEM} can be read, which openssl makes of other stores")
    return _pem(f"ssl.{kind}.location", location)


def _pem(name: str, location: str) -> str:
    try:
        return read_pem(location)
    except NotPem as error:
        raise BadSecurity(f"{name}: {error}") from None


def _checks_host(algorithm: str) -> bool:
    if algorithm.lower() not in ("https", "", "none"):
        raise BadSecurity(f"ssl.endpoint.identification.algorithm is {algorithm!r}, must be https or empty")
    return algorithm.lower() == "https"
