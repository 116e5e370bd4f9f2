"""The settings of listeners: where clients come in, and what they have to show there.

Most of them can be said for one listener alone, under Kafka's names for that: `listener.name.internal.ssl.client.auth`;
and some of those for one of its mechanisms: `listener.name.internal.plain.sasl.jaas.config`. What is said more
precisely counts before what is said for all.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, NamedTuple

from kohort.broker.setting_kinds import BadSetting, ConfigType, Kind

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)
PEM, PKCS12 = "PEM", "PKCS12"

OF_A_LISTENER = "listener.name."

_STRING, _LIST, _PASSWORD = Kind(ConfigType.STRING), Kind(ConfigType.LIST), Kind(ConfigType.PASSWORD)
_STORE = Kind(ConfigType.STRING, choices=(PEM, PKCS12))
_TIME = Kind(ConfigType.LONG, 1)


def _setting(default: Any, kind: Kind, about: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"kind": kind, "about": about})


def _secret(about: str) -> Any:
    return _setting(None, _PASSWORD, about, secret=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerConfig:
    """Of all listeners, or of one; field names are Kafka's with underscores."""

    listeners: tuple[str, ...] = _setting(
        (),
        _LIST,
        "Where clients connect: `NAME://HOST:PORT`, several with commas between them; `--listen` is the same.",
    )
    advertised_listeners: tuple[str, ...] = _setting(
        (),
        _LIST,
        "The addresses that clients are told, by the names of listeners. A listener that listens on all addresses and "
        "has none here tells each client the address that it has come to. Port 0: the listener's own.",
    )
    listener_security_protocol_map: tuple[str, ...] = _setting(
        tuple(f"{protocol}:{protocol}" for protocol in PROTOCOLS),
        _LIST,
        "The protocol of each listener, `INTERNAL:SASL_SSL,...`; one that is called like its protocol is known.",
    )
    ssl_keystore_type: str = _setting(
        PEM, _STORE, "How the broker's key and certificate are stored. Kafka's default is JKS."
    )
    ssl_keystore_location: str | None = _setting(
        None, _STRING, "A file with the broker's key and certificate, which is read again when it changes."
    )
    ssl_keystore_password: str | None = _secret("The password of a PKCS12 file.")
    ssl_keystore_certificate_chain: str | None = _secret(
        "The broker's certificate itself, and those that vouch for it, in PEM."
    )
    ssl_keystore_key: str | None = _secret("The broker's key itself, in PEM (PKCS#8).")
    ssl_key_password: str | None = _secret("The password of the key in PEM.")
    ssl_truststore_type: str = _setting(
        PEM, _STORE, "How the authorities are stored that vouch for clients. Kafka's default is JKS."
    )
    ssl_truststore_location: str | None = _setting(
        None, _STRING, "A file of the authorities that vouch for clients, which is read again when it changes."
    )
    ssl_truststore_password: str | None = _secret("The password of a PKCS12 file.")
    ssl_truststore_certificates: str | None = _secret("Those authorities themselves, in PEM.")
    ssl_client_auth: str = _setting(
        "none",
        Kind(ConfigType.STRING, choices=("none", "requested", "required")),
        "Whether clients must show a certificate. Who shows one is known by its subject, who shows none is anonymous.",
    )
    ssl_enabled_protocols: tuple[str, ...] = _setting(
        ("TLSv1.2", "TLSv1.3"),
        Kind(ConfigType.LIST, choices=("TLSv1.2", "TLSv1.3")),
        "The versions of TLS that are spoken.",
    )
    ssl_cipher_suites: tuple[str, ...] = _setting(
        (),
        _LIST,
        "The cipher suites that may be used, under their names in TLS; those that OpenSSL thinks safe by default.",
    )
    ssl_principal_mapping_rules: str = _setting(
        "DEFAULT",
        _STRING,
        "What a client is called by the subject of its certificate: `RULE:pattern/replacement/[LU]` or `DEFAULT`, with "
        "commas between them, of which the first counts that fits.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = _setting(
        (SCRAM_SHA_256, SCRAM_SHA_512),
        Kind(ConfigType.LIST, choices=MECHANISMS),
        "How clients can log in where they have to. Kafka's default is GSSAPI, which is not served.",
    )
    sasl_jaas_config: str | None = _secret(
        'Users of PLAIN: `... required user_alice="her password" user_bob="his";`. Only as '
        "`listener.name.<name>.plain.sasl.jaas.config`."
    )
    sasl_server_max_receive_size: int = _setting(
        524_288, Kind(ConfigType.INT, 1), "The largest request that is read from somebody who has not logged in."
    )
    connections_max_reauth_ms: int = _setting(
        0,
        Kind(ConfigType.LONG),
        "How long a login counts: a connection that is used later without a new login is closed. 0: for ever.",
    )
    connection_failed_authentication_delay_ms: int = _setting(
        100,
        Kind(ConfigType.INT, 0),
        "How long somebody who could not log in waits for the answer and the end of the connection.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = _setting(
        None,
        _STRING,
        "Where the keys are that OAUTHBEARER's tokens are signed with: an address that begins with https://.",
    )
    sasl_oauthbearer_jwks_location: str | None = _setting(
        None, _STRING, "The same keys in a file, which is read again when it changes. Ours alone."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = _setting(
        3_600_000, _TIME, "How often those keys are asked for again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = _setting(
        100, _TIME, "How soon they are asked for again when that has failed; each time twice as late."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = _setting(10_000, _TIME, "How late at most.")
    sasl_oauthbearer_expected_audience: tuple[str, ...] = _setting(
        (), _LIST, "For whom a token must be made out: one of these."
    )
    sasl_oauthbearer_expected_issuer: str | None = _setting(None, _STRING, "Who must have made out a token.")
    sasl_oauthbearer_sub_claim_name: str = _setting("sub", _STRING, "Where a token tells the name of the user.")
    sasl_oauthbearer_scope_claim_name: str = _setting(
        "scope", _STRING, "Where a token tells its scopes, which must be names if there are any."
    )
    sasl_oauthbearer_clock_skew_seconds: int = _setting(
        30, Kind(ConfigType.INT, 0), "How far the clock of whoever makes out tokens may be from ours."
    )


LISTENER_FIELDS: Mapping[str, "Field[Any]"] = {one.name: one for one in fields(ListenerConfig)}
LISTENER_TEXTS: Mapping[str, str] = {
    name.replace("_", "."): one.metadata["about"] for name, one in LISTENER_FIELDS.items()
}

_OF_ALL = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "connection.failed.authentication.delay.ms",
}
"""What cannot be said for one listener."""
_JAAS = "sasl.jaas.config"
_REAUTH = "connections.max.reauth.ms"
_OF_MECHANISMS = {
    PLAIN: {_REAUTH, _JAAS},
    SCRAM_SHA_256: {_REAUTH},
    SCRAM_SHA_512: {_REAUTH},
    OAUTHBEARER: {_REAUTH, *(name for name in LISTENER_TEXTS if name.startswith("sasl.oauthbearer."))},
}


class Scope(NamedTuple):
    """What a setting is said for: a listener, or one of its mechanisms."""

    listener: str
    mechanism: str | None
    name: str

    @property
    def kind(self) -> Kind:
        return kind_of(self.name)


def kind_of(name: str) -> Kind:
    """Of a setting that is said for all listeners, or of what is said for one without what stands before it."""
    kind: Kind = LISTENER_FIELDS[name.replace(".", "_")].metadata["kind"]
    return kind


def check_for_all(name: str) -> None:
    """`BadSetting` if this can be said for one listener only."""
    if name == _JAAS:
        raise BadSetting(f"{_JAAS} is of one listener: {OF_A_LISTENER}<name>.{PLAIN.lower()}.{_JAAS}")


def scope_of(name: str) -> Scope:
    """What a name that begins with `listener.name.` means; `BadSetting` if nothing."""
    listener, _, rest = name.removeprefix(OF_A_LISTENER).partition(".")
    for mechanism, known in _OF_MECHANISMS.items():
        setting = rest.removeprefix(f"{mechanism.lower()}.")
        if setting != rest and setting in known:
            return Scope(listener, mechanism, setting)
    if not listener or rest not in LISTENER_TEXTS or rest in _OF_ALL or rest == _JAAS:
        raise BadSetting(f"there is no setting {name}")
    return Scope(listener, None, rest)


def config_of(
    base: ListenerConfig, given: Mapping[str, str], listener: str, mechanism: str | None = None
) -> ListenerConfig:
    """The settings of one listener, or of one of its mechanisms, of all that was given."""
    found: dict[str, Any] = {}
    scopes = [(scope_of(name), text, name) for name, text in given.items() if name.startswith(OF_A_LISTENER)]
    for wanted in (None, mechanism):
        for scope, text, name in scopes:
            if scope.listener == listener.lower() and scope.mechanism == wanted:
                found[scope.name.replace(".", "_")] = scope.kind.read(name, text)
    return replace(base, **found)


def is_secret(name: str) -> bool:
    """Whether this is a setting that nobody else may read."""
    if name.startswith(OF_A_LISTENER):
        return scope_of(name).kind.is_secret
    return name in LISTENER_TEXTS and kind_of(name).is_secret
