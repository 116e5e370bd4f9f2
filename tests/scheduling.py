"""Which worker of pytest runs what: tests that need a SparkSession go together, for each worker would start its own.

Those of the pipeline are one half, those of what stands on it (report, documents, demo, examples) the other.

pytest-xdist has a marker for that, which pytest 9.2 does not let through.
"""

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

_ROOT = Path(__file__).parent.parent


class SparkTogether(LoadGroupScheduling):
    """Like `--dist loadgroup`, with the tests of Spark as two groups."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not _needs_spark(file):
            return super()._split_scope(nodeid)
        return "pipeline" if file.startswith("tests/spark/") else "upon the pipeline"


@cache
def _needs_spark(file: str) -> bool:
    text = (_ROOT / file).read_text()
    return "SparkSession" in text or 'xdist_group("spark")' in text


def make_scheduler(config: pytest.Config, log: Producer) -> SparkTogether | None:
    return SparkTogether(config, log) if config.getvalue("dist") == "loadgroup" else None
