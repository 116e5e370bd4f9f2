"""Subjects of certificates: what is expected here is what `X500Principal.getName()` of Java 17 has said of each."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kohort.broker.security.distinguished_names import BadCertificate, subject_of

CN, OU, O, C, UID = (  # noqa: E741 - they are called so
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.USER_ID,
)
Parts = list[list[tuple[x509.ObjectIdentifier, str]]]
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(parts: Parts) -> bytes:
    rdns = [x509.RelativeDistinguishedName([x509.NameAttribute(*one) for one in part]) for part in parts]
    subject, now = x509.Name(rdns), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.sign(KEY, SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([[(CN, "alice")]], "CN=alice"),
        (
            [[(C, "DE")], [(O, "Acme, Inc.")], [(OU, "Sales + Support")], [(CN, "alice")]],
            "CN=alice,OU=Sales \\+ Support,O=Acme\\, Inc.,C=DE",
        ),
        ([[(CN, ' #x="a";<b>\\ ')]], 'CN=\\ \\#x\\=\\"a\\"\\;\\<b\\>\\\\\\ '),
        ([[(CN, "# sharp")]], "CN=\\# sharp"),
        ([[(CN, "a  b = c")]], "CN=a  b \\= c"),
        ([[(CN, "  two  ")]], "CN=\\ \\ two\\ \\ "),
        ([[(CN, " ")]], "CN=\\ "),
        ([[(CN, "nul\0x")]], "CN=nul\\00x"),
        ([[(CN, "tab\there\rcr\nnl")]], "CN=tab\there\rcr\nnl"),
        ([[(CN, "Zoë 李 😀")]], "CN=Zoë 李 😀"),
        ([[(CN, "x"), (UID, "u1")]], "CN=x+UID=u1"),
        ([[(NameOID.EMAIL_ADDRESS, "a@b.c")], [(CN, "m")]], "CN=m,1.2.840.113549.1.9.1=#16056140622e63"),
        (
            [[(NameOID.TITLE, "t"), (CN, "a"), (O, "b")]],
            "CN=a+O=b+2.5.4.12=#0c0174",
        ),
        (
            [
                [(NameOID.DOMAIN_COMPONENT, "com")],
                [(NameOID.SERIAL_NUMBER, "12" * 100)],
                [(NameOID.STREET_ADDRESS, "s")],
                [(NameOID.LOCALITY_NAME, "l")],
                [(NameOID.STATE_OR_PROVINCE_NAME, "st")],
            ],
            f"ST=st,L=l,STREET=s,2.5.4.5=#1381c8{'3132' * 100},DC=com",
        ),
    ],
)
def test_a_subject_is_written_as_java_writes_it(parts: Parts, told: str) -> None:
    assert subject_of(certificate(parts)) == told


def test_no_name_can_look_like_another_part() -> None:
    assert subject_of(certificate([[(CN, "mallory,CN=alice")]])) == "CN=mallory\\,CN\\=alice"


def test_bytes_that_are_no_certificate_are_nobody() -> None:
    with pytest.raises(BadCertificate):
        subject_of(b"no certificate")
