"""Lines over time, read the way the page reads them."""

import re
from typing import Any

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PARTS = re.compile(r"\.|\*?[g-z0-9_-]*[A-Za-f]")


def unpacked(line: str) -> list[Any]:
    """What `packed` has packed."""
    found: list[Any] = []
    for part in _PARTS.findall(line):
        if part == ".":
            found.append(None)
        elif part.startswith("*"):
            found += [found[-1]] * _value(part[1:])
        else:
            value = _value(part)
            found.append(-(value + 1) // 2 if value % 2 else value // 2)
    return found


def _value(digits: str) -> int:
    return sum((_DIGITS.index(digit) & 31) << (5 * place) for place, digit in enumerate(digits))
