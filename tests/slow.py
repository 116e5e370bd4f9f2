"""Tests that take longer than `make test` has time for: it leaves out what bears these marks."""

import pytest

slow = pytest.mark.slow
nightly = pytest.mark.nightly
