"""A disk of a few MiB that can be full: a tmpfs, for those who may mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BALLAST = "ballast"
_PIECE = 4096


class MayNotMount(Exception):
    """Only root can have a small disk."""


class SmallDisk:
    """Where it is, and how to fill it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.data = place / "data"

    def fill(self) -> None:
        """Take every byte that is left."""
        with (self.place / _BALLAST).open("ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(_PIECE))
            except OSError:  # that is what was wanted
                return

    def free(self) -> None:
        """Give back what `fill` has taken."""
        (self.place / _BALLAST).unlink()


@contextmanager
def small_disk(place: Path, size_kib: int) -> Iterator[SmallDisk]:
    """`MayNotMount` if there can be none."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "none", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise MayNotMount(str(error)) from error
    if mounted.returncode:
        raise MayNotMount(mounted.stderr.strip())
    try:
        yield SmallDisk(place)
    finally:
        subprocess.run(["umount", str(place)], check=True)
