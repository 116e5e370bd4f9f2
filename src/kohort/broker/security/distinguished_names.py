"""The subject of a certificate as Java writes it (RFC 2253), which is what Kafka calls its owner.

The most special part comes first. Nine kinds of attributes have names; all others are written as their number, with
their value as it is encoded, in hexadecimal digits.
"""

from cryptography import x509
from cryptography.x509.oid import NameOID

from kohort.errors import ClientError, ErrorCode

_NAMES = {
    NameOID.COMMON_NAME: "CN",
    NameOID.COUNTRY_NAME: "C",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.USER_ID: "UID",
    NameOID.DOMAIN_COMPONENT: "DC",
}
_ESCAPED = ',=+<>#;"\\'
_LONG_LENGTH = 0x80


class BadCertificate(ClientError):
    """A certificate that TLS has let pass and that cannot be read."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER."""
    try:
        subject = x509.load_der_x509_certificate(certificate).subject
        return ",".join("+".join(_attribute(one) for one in rdn) for rdn in reversed(subject.rdns))
    except ValueError as error:
        raise BadCertificate(f"a certificate that cannot be read: {error}") from None


def _attribute(one: "x509.NameAttribute[str | bytes]") -> str:
    name = _NAMES.get(one.oid)
    if name is None or isinstance(one.value, bytes):
        return f"{name or one.oid.dotted_string}=#{_encoded(one).hex()}"
    return f"{name}={_escaped(one.value)}"


def _escaped(value: str) -> str:
    text = "".join(f"\\{c}" if c in _ESCAPED else "\\00" if c == "\0" else c for c in value)
    inner = text.strip(" \r")
    lead, trail = text[: len(text) - len(text.lstrip(" \r"))], text[len(text.rstrip(" \r")) :]
    return "".join(f"\\{c}" for c in lead) + inner + "".join(f"\\{c}" for c in trail if inner)


def _encoded(one: "x509.NameAttribute[str | bytes]") -> bytes:
    """The value as DER has it: the last piece of SEQUENCE { SET { SEQUENCE { number, value } } }."""
    data = x509.Name([one]).public_bytes()
    for _ in range(3):
        data = data[_head(data) :]
    return data[_head(data) + _length(data) :]


def _head(data: bytes) -> int:
    """How long the kind and the length of an element are."""
    return 2 if data[1] < _LONG_LENGTH else 2 + data[1] - _LONG_LENGTH


def _length(data: bytes) -> int:
    return data[1] if data[1] < _LONG_LENGTH else int.from_bytes(data[2 : _head(data)], "big")
