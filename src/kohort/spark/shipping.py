"""The package, sent along to the workers of a cluster that do not have it."""

import atexit
import shutil
import tempfile
import zipfile
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

PACKAGES = ("kohort", "pyspark_kohort")


def ship(spark: SparkSession) -> None:
    """Let the workers of a session import this very package; what it depends on they must have."""
    directory = Path(tempfile.mkdtemp(prefix="kohort-ship-"))
    # Spark hands it out for as long as this process lives.
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = directory / "kohort.zip"
    pack(archive)
    spark.sparkContext.addPyFile(str(archive))


def pack(archive: Path) -> None:
    """A zip of the package from which Python can import it."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for package in PACKAGES:
            with resources.as_file(resources.files(package)) as root:
                for path in sorted(root.rglob("*")):
                    if path.is_file() and "__pycache__" not in path.parts:
                        file.write(path, f"{package}/{path.relative_to(root)}")
