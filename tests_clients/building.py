"""The client programs, built once into a cache beside them.

What is downloaded is told by `pom.xml`, `go.mod` and `package.json`, each with exact versions.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE / ".build"


class BuildFailed(Exception):
    """A toolchain is there but could not make the program: that is a failure, not a reason to skip."""


@dataclass(frozen=True)
class Program:
    """What is started, without the broker's address."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Toolchain:
    """How the programs of one language are made, and which commands that takes."""

    commands: Mapping[str, str]
    """What has to be installed, by the command that shows it."""
    build: Callable[[str], Program]

    def missing(self) -> str | None:
        """What is not installed."""
        return next((name for command, name in self.commands.items() if shutil.which(command) is None), None)


def _run(command: list[str], where: Path) -> None:
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{done.stdout}")


def _make(into: Path, sources: Iterable[Path], make: Callable[[], None]) -> None:
    """Make what belongs into a directory, unless it has been made of just these files; one process at a time."""
    CACHE.mkdir(exist_ok=True)
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = into / "made-of"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == digest:
            return
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        make()
        stamp.write_text(digest)


def jars(pom: str) -> Path:
    """A directory with all jars of a `pom.xml`."""
    source, into = HERE / "java" / pom, CACHE / pom
    copy = ["mvn", "-q", "-B", "-f", str(source), "dependency:copy-dependencies", f"-DoutputDirectory={into}"]
    _make(into, [source], lambda: _run([*copy, "-DincludeScope=runtime"], into))
    return into


def java(class_path: str, *arguments: str) -> tuple[str, ...]:
    """A JVM that lives for seconds: it starts much faster without its optimising compiler."""
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
    return ("java", *quick, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class_path, *arguments)


def _java(main: str) -> Program:
    libs, classes = jars("clients.xml"), CACHE / "classes"
    sources = sorted((HERE / "java" / "src").glob("*.java"))
    compile_all = ["javac", "-Xlint:all,-classfile,-serial,-try", "-Werror", "-d", str(classes), "-cp", f"{libs}/*"]
    _make(classes, [HERE / "java" / "clients.xml", *sources], lambda: _run([*compile_all, *map(str, sources)], HERE))
    return Program(java(f"{classes}:{libs}/*", main))


def _go(package: str) -> Program:
    into, where = CACHE / package, HERE / "go"
    build = ["go", "build", "-mod=readonly", "-o", f"{into}/", f"./{package}"]
    sources = [where / "go.mod", where / "go.sum", *sorted(where.glob("*/*.go"))]
    _make(into, sources, lambda: _run(build, where))
    return Program((str(into / package),))


def _javascript(script: str) -> Program:
    into, package = CACHE / "javascript", HERE / "javascript" / "package.json"
    install = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]

    def make() -> None:
        shutil.copy(package, into)
        _run(install, into)

    _make(into, [package], make)
    return Program(("node", str(HERE / "javascript" / script)), {"NODE_PATH": str(into / "node_modules")})


JAVA = Toolchain({"java": "Java", "javac": "Java's compiler (a JDK)", "mvn": "Maven"}, _java)
GO = Toolchain({"go": "Go"}, _go)
JAVASCRIPT = Toolchain({"node": "Node", "npm": "npm"}, _javascript)


@functools.cache
def _built(toolchain: Toolchain, name: str) -> Program | BuildFailed:
    try:
        return toolchain.build(name)
    except BuildFailed as failure:
        return failure


def built(toolchain: Toolchain, name: str) -> Program:
    """The program, made by whoever asks first; a build that fails is not tried again for each test."""
    program = _built(toolchain, name)
    if isinstance(program, BuildFailed):
        raise program
    return program


def environment_of(program: Program) -> dict[str, str]:
    return {**os.environ, **program.environment}
