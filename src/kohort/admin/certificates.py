"""Certificates for development: an authority of one's own, and what it vouches for.

Keys are on the curve P-256, which every client knows, and stand in PEM as Kafka's and librdkafka's settings want them.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kohort.errors import KohortError

_CLOCKS_DIFFER_BY = timedelta(hours=1)
_LONGEST_NAME = 64


class BadCertificateRequest(KohortError):
    """What cannot be certified."""


class Issued(NamedTuple):
    """A certificate and its key, both in PEM."""

    certificate: str
    key: str


def make_authority(name: str, days: int) -> Issued:
    """Somebody who can vouch for others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    usage = _usage(signs_certificates=True)
    builder = _builder(subject, subject, key, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return _issued(builder, key, key)


def certify_server(authority: Issued, hosts: Sequence[str], days: int) -> Issued:
    """For a broker that clients reach under these names and addresses. `days` may be over already."""
    if not hosts:
        raise BadCertificateRequest("a server needs a host")
    return _certified(
        authority, hosts[0], days, ExtendedKeyUsageOID.SERVER_AUTH, [_alternative(host) for host in hosts]
    )


def certify_client(authority: Issued, name: str, days: int) -> Issued:
    """For somebody whom the broker is to know as `CN=name`."""
    return _certified(authority, name, days, ExtendedKeyUsageOID.CLIENT_AUTH, [])


def _certified(
    authority: Issued, name: str, days: int, purpose: x509.ObjectIdentifier, alternatives: Sequence[x509.GeneralName]
) -> Issued:
    try:
        issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
        issuer_key = load_pem_private_key(authority.key.encode(), None)
    except (ValueError, TypeError):
        raise BadCertificateRequest("the authority is not one that kohort certs has made") from None
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise BadCertificateRequest("the authority is not one that kohort certs has made")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), issuer.subject, key, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return _issued(builder, key, issuer_key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _CLOCKS_DIFFER_BY)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _issued(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey
) -> Issued:
    certificate = builder.sign(issuer_key, SHA256())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Issued(certificate.public_bytes(Encoding.PEM).decode(), secret.decode())


def _named(name: str) -> x509.Name:
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise BadCertificateRequest(f"{name!r} cannot be the name in a certificate: 1 to {_LONGEST_NAME} characters")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise BadCertificateRequest(f"{host!r} is no host") from None


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
