"""Tests that take longer than `make test` has time for."""

import os
from typing import Any

import pytest

_takes_a_night = pytest.mark.skipif(not os.environ.get("KOHORT_TEST_NIGHTLY"), reason="takes long: make nightly")
slow = pytest.mark.skipif(not os.environ.get("KOHORT_TEST_SLOW"), reason="takes long: make test-spark")


def nightly(test: Any) -> Any:
    """For tests that `make nightly` chooses by their mark, and nobody else runs."""
    return pytest.mark.nightly(_takes_a_night(test))
