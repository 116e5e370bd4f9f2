"""Listeners: the addresses where clients come in, each with a name, a protocol, and the address that clients are told.

They are written as Kafka's settings have them, `NAME://HOST:PORT`, IPv6 addresses in brackets. No host means all
addresses of this machine, port 0 one that the system chooses.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kohort.broker.security.listener_settings import (
    OF_A_LISTENER,
    PLAINTEXT,
    PROTOCOLS,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
    ListenerConfig,
    scope_of,
)
from kohort.broker.setting_kinds import BadSetting

_ALL = ("", "0.0.0.0", "::")
_LISTENER = re.compile(r"(?P<name>[A-Za-z0-9_-]+)://(?P<address>.*)")
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%a-z]+)\]|(?P<host>[A-Za-z0-9._-]*)):(?P<port>[0-9]{1,5})")
_MOST_PORT = 65_535


class Address(NamedTuple):
    """Where somebody listens, or says so."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it means all addresses of this machine."""
        return self.host in _ALL

    @property
    def is_loopback(self) -> bool:
        """Whether nobody comes there but from this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"


class Listener(NamedTuple):
    """One of them. What is told to clients is None where each is told the address that it has come to."""

    name: str
    protocol: str
    address: Address
    told: Address | None

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def has_tls(self) -> bool:
        return self.protocol in (SSL, SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self.protocol in (SASL_PLAINTEXT, SASL_SSL)

    def at(self, port: int) -> "Listener":
        """The same where it really listens."""
        told = self.told
        if told is not None and not told.port:
            told = told._replace(port=port)
        return self._replace(address=self.address._replace(port=port), told=told)


def parse_address(text: str) -> Address:
    """HOST:PORT; `ValueError` if it is not that."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > _MOST_PORT or (found["ipv6"] and not _is_ipv6(found["ipv6"])):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return Address(found["ipv6"] or found["host"] or "", int(found["port"]))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def listeners_of(config: ListenerConfig, default: Address, given: Mapping[str, str]) -> tuple[Listener, ...]:
    """All listeners; one without security at `default` if none are named. `BadSetting` if something does not fit."""
    found = _named("listeners", config.listeners) if config.listeners else {PLAINTEXT: default}
    protocols = _protocols(config.listener_security_protocol_map)
    told = _named("advertised.listeners", config.advertised_listeners)
    for name in told:
        if name not in found:
            raise BadSetting(f"advertised.listeners tells of {name}, which is none of the listeners")
        if told[name].is_everywhere:
            raise BadSetting(f"advertised.listeners cannot tell clients of {told[name]}: nobody can connect to that")
    for name in found:
        if name not in protocols:
            raise BadSetting(f"listener.security.protocol.map does not say which protocol {name} has")
    _check_ports(found)
    _check_names(found, given)
    return tuple(
        Listener(name, protocols[name], address, told.get(name, None if address.is_everywhere else address))
        for name, address in found.items()
    )


def _named(setting: str, texts: Sequence[str]) -> dict[str, Address]:
    found: dict[str, Address] = {}
    for text in texts:
        parts = _LISTENER.fullmatch(text)
        try:
            address = parse_address(parts["address"] if parts else "")
        except ValueError:
            raise BadSetting(f"{setting} cannot be {text!r}: it is not NAME://HOST:PORT") from None
        assert parts is not None
        name = parts["name"].upper()
        if name in found:
            raise BadSetting(
                f"{setting} names {name} twice; give them names of their own, and say with "
                "listener.security.protocol.map which protocols they have"
            )
        found[name] = address
    return found


def _protocols(pairs: Sequence[str]) -> dict[str, str]:
    found = {protocol: protocol for protocol in PROTOCOLS}
    for pair in pairs:
        name, _, protocol = (part.strip().upper() for part in pair.partition(":"))
        if not name or protocol not in PROTOCOLS:
            known = "|".join(PROTOCOLS)
            raise BadSetting(f"listener.security.protocol.map cannot be {pair!r}: it is not NAME:{known}")
        found[name] = protocol
    return found


def _check_ports(found: Mapping[str, Address]) -> None:
    """One port serves one listener; the system would say so for the second, but not which it is."""
    taken: dict[Address, str] = {}
    for name, address in found.items():
        if address.port and address in taken:
            raise BadSetting(f"listeners {taken[address]} and {name} cannot both be at {address}")
        taken[address] = name


def _check_names(found: Mapping[str, Address], given: Mapping[str, str]) -> None:
    for name in given:
        if name.startswith(OF_A_LISTENER) and scope_of(name).listener.upper() not in found:
            raise BadSetting(f"{name}: there is no listener of that name; there are {', '.join(found)}")
