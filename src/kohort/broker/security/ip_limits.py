"""`max.connections.per.ip.overrides`: how many connections single addresses may have, `host:number,host:number`."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache

from kohort.broker.setting_kinds import BadSetting

_NAME = "max.connections.per.ip.overrides"
_LARGEST = (1 << 31) - 1


@lru_cache(maxsize=16)
def parse_overrides(text: str) -> Mapping[str, int]:
    """The limit of each host, which is a name or an address; `BadSetting` if it is not written like that."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = part.rpartition(":")
        if not host or not (number.isascii() and number.isdecimal()) or int(number) > _LARGEST:
            raise BadSetting(f"{_NAME} cannot be {text!r}: it must be host:number,host:number")
        found[plain_address(host.strip("[]"))] = int(number)
    return found


def plain_address(host: str) -> str:
    """An address as there is one way to write it; a name as it is. An IPv4 address that came as IPv6 is itself."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower()
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
