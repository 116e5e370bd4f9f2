"""Stores of keys and certificates as Java and openssl write them (PKCS#12), turned into PEM."""

import secrets

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    PKCS12KeyAndCertificates,
    load_pkcs12,
)

from kohort.broker.setting_kinds import BadSetting


def key_and_chain(data: bytes, password: str | None) -> tuple[str, str, str]:
    """A key, the certificates that go with it, and a password of ours that the key has in between."""
    store = _opened("ssl.keystore.location", data, password)
    if store.key is None or store.cert is None:
        raise BadSetting("ssl.keystore.location: there is no key in the store, or no certificate for it")
    own = secrets.token_hex()
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(own.encode()))
    chain = [store.cert, *store.additional_certs]
    return key.decode(), _pem_of(chain), own


def certificates_in(data: bytes, password: str | None) -> str:
    """All certificates of a store."""
    store = _opened("ssl.truststore.location", data, password)
    found = [*([store.cert] if store.cert else []), *store.additional_certs]
    if not found:
        raise BadSetting("ssl.truststore.location: there is no certificate in the store")
    return _pem_of(found)


def _opened(setting: str, data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise BadSetting(f"{setting}: is not PKCS12, or not with this password") from None


def _pem_of(certificates: list[PKCS12Certificate]) -> str:
    return "".join(one.certificate.public_bytes(Encoding.PEM).decode() for one in certificates)
