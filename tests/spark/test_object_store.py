"""A log in an object store that speaks S3: a server of moto's, which shares no code with what is tested.

It has many dependencies, which do not all fit to ours, so it has an environment of its own: `make test-spark`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from kohort.log.source import BadSource
from kohort.spark.inputs import find_logs
from kohort.spark.schema import LOG_TABLES
from tests.golden_sets import ROOT
from tests.slow import slow
from tests.spark.runs import by_place, rows_in, rows_read

SERVER = os.environ.get("KOHORT_TEST_S3", "")
LOG = ROOT / "kafka-3.9.1"
KOHORT = Path(sys.executable).parent / "kohort"

pytestmark = pytest.mark.skipif(not SERVER, reason="only with moto's server: make test-spark")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URI of a bucket that holds the log under `broker-1/`; this process and those it starts find it."""
    command = [SERVER, "-H", "127.0.0.1", "-p", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        store, _ = fs.FileSystem.from_uri("s3://logs?allow_bucket_creation=true")
        store.create_dir("logs")
        for path in LOG.rglob("*"):
            if path.is_file():
                with store.open_output_stream(f"logs/broker-1/{path.relative_to(LOG)}") as file:
                    file.write(path.read_bytes())
        yield "s3a://logs"
        server.terminate()
        server.stdout.read()


@pytest.mark.parametrize("table", LOG_TABLES)
def test_a_log_in_a_store_has_the_rows_of_one_on_disk(bucket: str, table: str) -> None:
    found = rows_read(f"{bucket}/broker-1", table)
    assert by_place(found) == by_place(rows_read(LOG, table))


def test_what_is_not_there_is_said(bucket: str) -> None:
    with pytest.raises(BadSource, match="No such file or directory"):
        find_logs([f"{bucket}/broker-2"])


@slow
def test_the_pipeline_reads_a_store(bucket: str, tmp_path: Path) -> None:
    command = [KOHORT, "pipeline", f"{bucket}/broker-1", "--out", tmp_path, "--master", "local[2]"]
    subprocess.run(command, check=True)
    for table in LOG_TABLES:
        assert by_place(rows_in(tmp_path, table)) == by_place(rows_read(LOG, table))
