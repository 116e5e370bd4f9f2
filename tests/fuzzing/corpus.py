"""The inputs that are kept: a file of lines for each target, each a name and the input in base64.

What fuzzing found interesting is called by its checksum and chosen anew by `--keep`. What once failed is called
"finding-…", is written down by hand or by `--finding`, and stays for good.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

_ROOT = Path(__file__).parent / "corpus"
FINDING = "finding-"


def kept(target: str) -> dict[str, bytes]:
    """By name."""
    path = _path(target)
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text().splitlines())
    return {name: base64.b64decode(rest[0]) if rest else b"" for name, *rest in lines}


def keep(target: str, inputs: Iterable[bytes]) -> int:
    """These in place of all but the findings. Returns how many there are then."""
    found = {name: data for name, data in kept(target).items() if name.startswith(FINDING)}
    new = {hashlib.sha1(data).hexdigest()[:12]: data for data in inputs if data not in found.values()}
    _write(target, found | dict(sorted(new.items())))
    return len(found) + len(new)


def keep_finding(target: str, name: str, data: bytes) -> None:
    """An input that failed: it is tried in every run of the tests from now on."""
    _write(target, {f"{FINDING}{name}": data} | kept(target))


def _write(target: str, inputs: Mapping[str, bytes]) -> None:
    _ROOT.mkdir(exist_ok=True)
    lines = (f"{name} {base64.b64encode(data).decode()}\n" for name, data in inputs.items())
    _path(target).write_text("".join(lines))


def _path(target: str) -> Path:
    return _ROOT / f"{target}.txt"
