"""The ways to submit the pipeline: one to a real cluster, all of them to Spark's own reading of a command line."""

import contextlib
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
import yaml
from pyspark.sql import SparkSession

from kohort.spark.java import find_java, make_java_home
from kohort.spark.manifest import read_manifest
from kohort.spark.schema import LOG_TABLES
from tests.golden_sets import ROOT as GOLDEN
from tests.slow import slow
from tests.spark.cluster import standalone_cluster
from tests.spark.conftest import spark as spark  # the fixture, for this file too
from tests.spark.runs import by_place, rows_in, rows_read

ROOT = Path(__file__).parents[2]
HERE = ROOT / "examples" / "spark-cluster"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
WANTED = ["s3a://logs/broker-1", "--out", "/mnt/tables/of today"]

STORE = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "pss/t", "AWS_REGION": "us-east-1"}
SCRIPTS: dict[str, dict[str, str]] = {
    "standalone": {"MASTER": "spark://127.0.0.1:7077"},
    "yarn": {},
    "kubernetes": {"MASTER": "k8s://https://127.0.0.1:6443", "IMAGE": "registry/kohort-spark:1"},
}
DRIVERS = {"yarn": "spark.yarn.appMasterEnv.", "kubernetes": "spark.kubernetes.driverEnv."}


def submit(script: str, arguments: list[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [str(HERE / f"{script}.sh"), *arguments]
    return subprocess.run(command, env=os.environ | dict(environment), capture_output=True, text=True)


@pytest.mark.parametrize("script", SCRIPTS)
def test_spark_understands_what_would_be_submitted(spark: SparkSession, tmp_path: Path, script: str) -> None:
    done = submit(script, ["--dry-run", *WANTED], SCRIPTS[script] | STORE)
    assert done.returncode == 0, done.stderr
    assert STORE["AWS_SECRET_ACCESS_KEY"] not in done.stdout
    program, *words = shlex.split(done.stdout)
    assert program == "spark-submit"
    java: Any = spark._jvm
    utils = java.org.apache.spark.api.python.PythonUtils
    read = java.org.apache.spark.deploy.SparkSubmitArguments(
        utils.toSeq(words), utils.toScalaMap({"HADOOP_CONF_DIR": str(tmp_path)})
    )
    children = read.childArgs()
    assert [children.apply(number) for number in range(children.size())] == WANTED
    assert read.master() == SCRIPTS[script].get("MASTER", "yarn")
    assert read.isPython()
    application = read.primaryResource()
    assert (ROOT / "examples/spark-cluster/pipeline.py").exists()
    assert application.endswith("/pipeline.py")
    settings = read.sparkProperties()
    for prefix in ("spark.executorEnv.", *([DRIVERS[script]] if script in DRIVERS else [])):
        assert settings.apply(f"{prefix}AWS_REGION") == "us-east-1"


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_a_source_it_is_said_how_to_use_it(script: str) -> None:
    done = submit(script, [], SCRIPTS[script])
    assert (done.returncode, done.stdout) == (2, "")
    assert "SOURCE --out DIR" in done.stderr


def test_a_master_has_to_be_named() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MASTER"}
    done = subprocess.run([HERE / "standalone.sh", "x"], env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "set MASTER to spark://HOST:7077" in done.stderr


@slow
def test_a_cluster_whose_workers_have_nothing_makes_the_tables(tmp_path: Path) -> None:
    """A master and two workers with a Python that has no packages: all they know is in the archive."""
    environment, out, log = tmp_path / "environment.tar.gz", tmp_path / "tables", GOLDEN / "kafka-3.9.1"
    subprocess.run([sys.executable, HERE / "pack.py", environment], check=True)
    with tarfile.open(environment) as archive:
        names = {name.partition("/")[0] for name in archive.getnames()}
    assert {"kohort", "pyspark_kohort", "numba", "pyarrow"} <= names
    assert "pyspark" not in names
    make_java_home(tmp_path / "java", find_java())
    with contextlib.ExitStack() as running:
        patch = running.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYSPARK_PYTHON", "")  # the cluster sets it, and this puts it back
        (directory := tmp_path / "cluster").mkdir()
        master, _ = running.enter_context(standalone_cluster(directory))
        done = submit(
            "standalone",
            [str(log), "--out", str(out)],
            {
                "MASTER": master,
                "ENVIRONMENT": str(environment),
                "EXECUTOR_MEMORY": "1g",
                "SHUFFLE_PARTITIONS": "2",
                "SPARK_SUBMIT": str(SUBMIT),
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "JAVA_HOME": str(tmp_path / "java"),
            },
        )
    assert done.returncode == 0, [line for line in done.stderr.splitlines() if " INFO " not in line][:50]
    assert read_manifest(out).accounting["read"] == len(rows_in(out, "records"))
    for table in LOG_TABLES:
        assert by_place(rows_in(out, table)) == by_place(rows_read(log, table))


def test_the_image_is_made_of_what_is_there_and_runs_as_nobody_special() -> None:
    lines = (HERE / "kubernetes/Dockerfile").read_text().replace("\\\n", "").splitlines()
    steps = [line.split() for line in lines if line and not line.startswith("#")]
    assert {step[0] for step in steps} <= {"FROM", "USER", "RUN", "COPY", "ENV"}
    (base,) = [step[1] for step in steps if step[0] == "FROM"]
    assert base.partition(":")[2][:1].isdecimal()  # a release, not whatever is the latest
    for step in steps:
        if step[0] == "COPY":
            assert all((ROOT / source).exists() for source in step[1:-1])
    assert [step[1] for step in steps if step[0] == "USER"][-1] == "spark"


def test_the_pod_mounts_the_volumes_that_it_names() -> None:
    pod = yaml.safe_load((HERE / "kubernetes/pod.yaml").read_text())
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    (container,) = pod["spec"]["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    # Spark takes volumes of such names for what it shuffles.
    assert any(name.startswith("spark-local-dir-") for name in mounted)
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
