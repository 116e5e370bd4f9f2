"""Tests that take longer than `make test` has time for."""

import os

import pytest

nightly = pytest.mark.skipif(not os.environ.get("KOHORT_TEST_NIGHTLY"), reason="takes long: make nightly")
slow = pytest.mark.skipif(not os.environ.get("KOHORT_TEST_SLOW"), reason="takes long: make test-spark")
