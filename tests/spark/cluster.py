"""A Spark standalone cluster on this machine: one master, two workers whose Python does not have the package."""

import contextlib
import os
import re
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

from kohort.spark.java import find_java, make_java_home

WORKERS = 2

_LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %m%n
"""


@contextlib.contextmanager
def standalone_cluster(directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a cluster, and the settings of a session whose workers know only what is sent to them.

    Their Python has the packages of this one but not ours, which is only linked to from there.
    """
    make_java_home(directory / "java", find_java())
    (directory / "log4j2.properties").write_text(_LOGGING)
    environment = os.environ | {
        "JAVA_HOME": str(directory / "java"),
        "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(directory / "work"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    host = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with contextlib.ExitStack() as running:
        master = _start("master.Master", host, environment, r"Starting Spark master at (spark://\S+)")
        address = running.enter_context(master)
        for _ in range(WORKERS):
            limits = ["--cores", "1", "--memory", "1g", address]
            worker = _start("worker.Worker", [*host, *limits], environment, "(Successfully registered) with master")
            running.enter_context(worker)
        python = directory / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        python.chmod(0o755)
        os.environ["PYSPARK_PYTHON"] = str(python)
        settings = {
            "spark.executorEnv.PYTHONPATH": sysconfig.get_path("purelib"),
            "spark.executor.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        yield address, settings


@contextlib.contextmanager
def _start(class_: str, arguments: list[str], environment: Mapping[str, str], ready: str) -> Iterator[str]:
    """A daemon of Spark's, from when it says that it is ready until it is not needed any more."""
    command = [Path(pyspark.__file__).parent / "bin" / "spark-class", f"org.apache.spark.deploy.{class_}", *arguments]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    with process, contextlib.ExitStack() as running:
        running.callback(process.terminate)
        told = []
        for line in process.stdout:
            told.append(line)
            if found := re.search(ready, line):
                break
        else:
            raise RuntimeError(f"{class_} ended: {''.join(told[-20:])}")
        drain = threading.Thread(target=process.stdout.read)  # else the pipe fills up
        drain.start()
        yield found[1]
        process.terminate()
        drain.join()
