"""The load client in `bench/load`, written in Go: built when it is needed, run for one measurement at a time."""

import functools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench import kafka

_SOURCE = Path(__file__).parent / "load"

Figures = dict[str, float]


def available() -> bool:
    return shutil.which("go") is not None


@functools.cache
def program(name: str) -> Path:
    """`load` or `kfake`; Go itself knows whether there is anything to build."""
    place = kafka.CACHE / "bin"
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(place), ".", "./kfake"], cwd=_SOURCE, check=True)
    return place / name


def run(command: str, address: str, **flags: object) -> Figures:
    """One measurement. An answer that is not the expected one ends it, and there are no figures then."""
    (figures,) = reports(command, address, **flags)
    return figures


def reports(command: str, address: str, **flags: object) -> Iterator[Figures]:
    """What a longer measurement tells, as it tells it."""
    arguments = [f"-{name}={value}" for name, value in flags.items()]
    with subprocess.Popen(
        [str(program("load")), command, f"-addr={address}", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stdout:
                yield dict(json.loads(line))
            complaint = process.stderr.read()
            if process.wait():
                raise RuntimeError(f"load {command} against {address}: {complaint}")
        finally:
            process.kill()
