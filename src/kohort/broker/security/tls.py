"""TLS on a listener: the broker's certificate, whom it trusts, and how both are changed without a restart.

A connection is made with what counted when it began. New files count for new connections when they are noticed; files
that cannot be used change nothing but the log, which says so once.
"""

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import NamedTuple

from kohort.broker.security.listener_settings import PKCS12, ListenerConfig
from kohort.broker.security.principal import ANONYMOUS, Principal
from kohort.broker.security.principal_rules import PrincipalRules
from kohort.broker.setting_kinds import BadSetting
from kohort.log.pem import NotPem, load_certificate, read_pem, reason_of

logger = logging.getLogger(__name__)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_NO_TLS = ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER")
"""What somebody is told who speaks another language: nothing, for he would not understand it."""
_SUITES_1_3 = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


class _Look(NamedTuple):
    """What tells whether a file is another one than before."""

    changed_ns: int
    size: int
    number: int


class _Handshake(ssl.SSLObject):
    """One connection's TLS, which lets the other side know why it is refused.

    OpenSSL has written an alert then, but event loops give up before they send it. So the refusal waits until it is
    asked for again: that is when the other side has read the alert and gone, or when its time is up.
    """

    _refusal: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._refusal is not None:
            raise self._refusal
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if error.reason in _NO_TLS:
                raise
            self._refusal = error
            logger.info("a client is refused: %s", getattr(error, "verify_message", None) or error.reason)
            raise ssl.SSLWantReadError from None


class Tls:
    """The TLS of one listener; `BadSetting` if its settings or its files do not fit."""

    def __init__(self, listener: str, config: ListenerConfig) -> None:
        self._listener = listener
        self._config = config
        self._rules = PrincipalRules(config.ssl_principal_mapping_rules)
        self._looks = self._look()
        self.context = _context(config)
        """With which a new connection is made."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """It is there already."""

    async def stop(self) -> None:
        """There is nothing to be let go of."""

    @property
    def is_client_known(self) -> bool:
        """Whether nobody gets in without a certificate."""
        return self._config.ssl_client_auth == "required"

    def refresh(self, *, even_if_unchanged: bool = False) -> None:
        """Use the files as they are now, if they have changed."""
        looks = self._look()
        if looks == self._looks and not even_if_unchanged:
            return
        self._looks = looks
        try:
            self.context = _context(self._config)
        except BadSetting as error:
            logger.error("listener %s keeps its certificates: %s", self._listener, error)
        else:
            logger.info("listener %s has new certificates", self._listener)

    def principal_of(self, connection: ssl.SSLObject) -> Principal:
        """Who has shown which certificate; `BadSetting` if no rule says how somebody with that is called."""
        certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        from kohort.broker.security.distinguished_names import subject_of  # not needed without certificates, and large

        return self._rules.principal_of(subject_of(certificate))

    def _look(self) -> dict[str, _Look | None]:
        found: dict[str, _Look | None] = {}
        for location in (self._config.ssl_keystore_location, self._config.ssl_truststore_location):
            if location is not None:
                try:
                    status = os.stat(location)
                except OSError:
                    found[location] = None
                else:
                    found[location] = _Look(status.st_mtime_ns, status.st_size, status.st_ino)
        return found


def _context(config: ListenerConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Handshake
    # Nobody comes back with what an earlier certificate has proved.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0
    _limit(context, config)
    try:
        _load_own(context, config)
    except (ssl.SSLError, ValueError) as error:
        raise BadSetting(f"the broker's certificate cannot be used: {reason_of(error)}") from None
    context.verify_mode = _CLIENT_AUTH[config.ssl_client_auth]
    try:
        trusted = _trusted(config)
        if trusted is not None:
            context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise BadSetting(f"the authorities that vouch for clients cannot be used: {reason_of(error)}") from None
    if trusted is None and context.verify_mode is not ssl.CERT_NONE:
        raise BadSetting(
            f"ssl.client.auth={config.ssl_client_auth} needs ssl.truststore.location or ssl.truststore.certificates: "
            "who vouches for clients"
        )
    return context


def _limit(context: ssl.SSLContext, config: ListenerConfig) -> None:
    """The versions and suites that are spoken. Only suites up to 1.2 can be chosen; 1.3 has three good ones."""
    versions = set(config.ssl_enabled_protocols)
    suites = set(config.ssl_cipher_suites)
    if suites:
        if not suites & _SUITES_1_3:
            versions.discard("TLSv1.3")
        elif "TLSv1.3" in versions and not suites >= _SUITES_1_3:
            raise BadSetting(
                f"ssl.cipher.suites must name all suites of TLSv1.3 or none: {', '.join(sorted(_SUITES_1_3))}"
            )
        older = [_name_in_openssl(suite) for suite in config.ssl_cipher_suites if suite not in _SUITES_1_3]
        if not older:
            versions.discard("TLSv1.2")
        for suite in older:
            _check_suite(suite)
        if older:
            context.set_ciphers(":".join(older))
    if not versions:
        raise BadSetting("ssl.enabled.protocols and ssl.cipher.suites leave no version of TLS")
    context.minimum_version = _VERSIONS[min(versions)]
    context.maximum_version = _VERSIONS[max(versions)]


def _check_suite(suite: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(suite)
    except ssl.SSLError:
        raise BadSetting(f"ssl.cipher.suites cannot have {suite}: there is no such cipher suite") from None


def _name_in_openssl(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is called ECDHE-RSA-AES128-GCM-SHA256 there."""
    if not suite.startswith("TLS_"):
        return suite
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_128", "AES128").replace("AES_256", "AES256")
    return name.replace("POLY1305_SHA256", "POLY1305").replace("_CBC", "").replace("_", "-").removeprefix("RSA-")


def _load_own(context: ssl.SSLContext, config: ListenerConfig) -> None:
    location, chain = config.ssl_keystore_location, config.ssl_keystore_certificate_chain
    if location is None and chain is None:
        raise BadSetting("TLS needs ssl.keystore.location, or ssl.keystore.certificate.chain and ssl.keystore.key")
    if location is None:
        assert chain is not None
        load_certificate(context, chain, config.ssl_keystore_key, config.ssl_key_password)
    elif config.ssl_keystore_type == PKCS12:
        from kohort.broker.security.pkcs12 import key_and_chain  # it needs a large library

        key, chain, password = key_and_chain(_bytes("ssl.keystore.location", location), config.ssl_keystore_password)
        load_certificate(context, chain, key, password)
    else:
        load_certificate(context, _pem("ssl.keystore.location", location), None, config.ssl_key_password)


def _trusted(config: ListenerConfig) -> str | None:
    location = config.ssl_truststore_location
    if location is None:
        return config.ssl_truststore_certificates
    if config.ssl_truststore_type == PKCS12:
        from kohort.broker.security.pkcs12 import certificates_in

        return certificates_in(_bytes("ssl.truststore.location", location), config.ssl_truststore_password)
    return _pem("ssl.truststore.location", location)


def _pem(setting: str, location: str) -> str:
    try:
        return read_pem(location)
    except NotPem as error:
        raise BadSetting(f"{setting}: {error}") from None


def _bytes(setting: str, location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise BadSetting(f"{setting}: {location}: {error.strerror}") from None
