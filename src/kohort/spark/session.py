"""A SparkSession that works by itself: Java is found, the clock is UTC, Arrow is on, and Spark keeps its chatter."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from kohort.errors import KohortError
from kohort.spark.java import find_java, make_java_home
from kohort.spark.shipping import ship

LOCAL = "local[*]"

LOG_LEVEL = "KOHORT_SPARK_LOG"
"""The environment variable that lets Spark and its workers talk on stderr, at a level of log4j such as warn."""

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_STOPPED = "stopped SparkContext"
"""What Spark says of a cluster on which it has given up before it began."""

_THROWN = re.compile(r'Exception in thread "\w+" [\w.$]+: ')

_MIB_PER_CORE = 512
"""What a task takes in Java, most of it the writer of a Parquet file. Spark's default is 1 GiB for all cores."""


class SparkDidNotStart(KohortError):
    """Java was found, but Spark on it ended at once."""


def get_spark(
    master: str | None = None,
    *,
    name: str = "kohort",
    settings: Mapping[str, str] | None = None,
    on_context: Callable[[], None] = lambda: None,
) -> SparkSession:
    """The session that is there already, else a new one: on this machine, or on the cluster at `master`.

    A session of somebody else's making is taken as it is; only a new one gets our settings, and sends this package to
    the workers of its cluster. `on_context` is called when Java has started, well before there is a session.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)  # else the first python3 on the path, which lacks our packages
    master = master or LOCAL
    chosen = {
        **_SETTINGS,
        **(_LOCAL_SETTINGS | {"spark.driver.memory": local_memory(master)} if master.startswith("local") else {}),
        **(settings or {}),
    }
    with _quiet_java(chosen.get("spark.driver.extraJavaOptions", "")) as java_options:
        conf = SparkConf().setAppName(name).setMaster(master)
        conf.setAll(list((chosen | {"spark.driver.extraJavaOptions": java_options}).items()))
        try:
            SparkContext.getOrCreate(conf)
            on_context()
            session = SparkSession.builder.config(conf=conf).getOrCreate()
        except Py4JJavaError as error:
            if _STOPPED in str(error):
                raise SparkDidNotStart(f"no cluster of Spark's answers at {master}") from error
            raise
    if not master.startswith("local"):
        ship(session)
    return session


def local_memory(master: str) -> str:
    """The heap for tasks that all run in one Java on this machine: by cores, and at most half of its memory."""
    given = re.fullmatch(r"local\[(\d+)(,.*)?\]", master)
    cores = int(given[1]) if given else 1 if master == "local" else os.cpu_count() or 1
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (2 << 20)
    return f"{min(half, _MIB_PER_CORE * (cores + 1))}m"


@contextlib.contextmanager
def _quiet_java(options: str) -> Iterator[str]:
    """The options under which Java starts without a word, with JAVA_HOME set for as long as it takes to start it.

    What Java says all the same is kept until it has started, and told if it does not.
    """
    level, home = os.environ.get(LOG_LEVEL), os.environ.get("JAVA_HOME")
    with (
        tempfile.TemporaryDirectory(prefix="kohort-java-") as directory,
        resources.as_file(resources.files("kohort.spark") / "log4j2.properties") as logging,
    ):
        said = Path(directory, "stderr")
        make_java_home(Path(directory), find_java(), said if level is None else None)
        os.environ["JAVA_HOME"] = directory
        try:
            yield f"{options} -Dlog4j2.configurationFile={logging.as_uri()} -Dkohort.log={level or 'off'}".strip()
        except PySparkRuntimeError as error:
            raise SparkDidNotStart(f"Spark did not start: {_last_words(said) or error}") from None
        finally:
            if home is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = home


def _last_words(said: Path) -> str:
    """What Java has complained of, without the places in its code."""
    lines = said.read_text(errors="replace").splitlines() if said.exists() else []
    return " / ".join(_THROWN.sub("", line) for line in lines if line.strip() and not line.startswith("\tat "))[-500:]


def end_java() -> None:
    """End the Java that this process has started for its sessions, all of which are stopped.

    Without this it lives for as long as the process does, and a moment longer.
    """
    gateway = SparkContext._gateway
    java: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is None or java is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    assert java.stdin is not None
    java.stdin.close()  # that is what it watches
    java.wait()
