"""What can be said of dependencies without asking anybody: each stands in `constraints.txt` with one version and no
address, and what is installed is that.
"""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution

_PINNED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+_-]+)")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


_INSTALLER = frozenset({"pip"})
"""Comes with Python, and puts everything else into its place."""


def normal(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> tuple[dict[str, str], list[str]]:
    """The versions of a file of constraints, and what is wrong with it."""
    found: dict[str, str] = {}
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        told = line.partition("#")[0].strip()
        if not told:
            continue
        pinned = _PINNED.fullmatch(told)
        if pinned is None:
            wrong.append(f"line {number}: {told!r} is not name==version")
        elif normal(pinned[1]) in found:
            wrong.append(f"line {number}: {pinned[1]} stands there twice")
        else:
            found[normal(pinned[1])] = pinned[2]
    return found, wrong


def with_addresses(requirements: Iterable[str]) -> list[str]:
    """Requirements that come from an address and not from an index: nobody knows what stands there tomorrow."""
    return [one for one in requirements if re.search(r"@|://", one.partition(";")[0])]


def needed(requirements: Iterable[str], extras: frozenset[str] = frozenset()) -> set[str]:
    """Everything that is installed because of these, by name."""
    found: set[str] = set()
    waiting = [(one, extras) for one in requirements]
    while waiting:
        text, wanted = waiting.pop()
        match = _REQUIREMENT.match(text)
        if match is None:
            continue
        name, asked, _, marker = match.groups()
        of_extra = _EXTRA.search(marker or "")
        if of_extra is not None and normal(of_extra[1]) not in wanted:
            continue
        try:
            below = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # it is for another system, or not wanted here
        mine = frozenset(normal(one) for one in re.split(r"[,\s]+", asked or "") if one)
        if normal(name) not in found or mine:
            is_new = normal(name) not in found
            found.add(normal(name))
            waiting += [(one, mine) for one in below if is_new or _EXTRA.search(one)]
    return found


def differences(names: Iterable[str], pinned: Mapping[str, str]) -> list[str]:
    """What is installed and not as it is written down."""
    wrong = []
    for name in sorted(set(names) - _INSTALLER):
        version = distribution(name).version
        if name not in pinned:
            wrong.append(f"{name} {version} is needed and not pinned")
        elif pinned[name] != version:
            wrong.append(f"{name} is {version}, pinned is {pinned[name]}")
    return wrong
