"""Which worker of pytest runs what: tests that need a SparkSession go together, for each worker would start its own.

pytest-xdist has a marker for that, which pytest 9.2 does not let through.
"""

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

_ROOT = Path(__file__).parent.parent


class SparkTogether(LoadGroupScheduling):
    """Like `--dist loadgroup`, with the tests of Spark as a group."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if _needs_spark(file) else super()._split_scope(nodeid)


@cache
def _needs_spark(file: str) -> bool:
    text = (_ROOT / file).read_text()
    return "SparkSession" in text or 'xdist_group("spark")' in text


def make_scheduler(config: pytest.Config, log: Producer) -> SparkTogether | None:
    return SparkTogether(config, log) if config.getvalue("dist") == "loadgroup" else None
