"""The schemas of all messages, which are all that is taken from kio.

kio makes its types known to Hypothesis where that is installed. No broker needs this, and loading Hypothesis takes
longer than all the rest of its start, so it is kept out of sight while kio is loaded, unless it is there already.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_HYPOTHESIS = "hypothesis"


@contextmanager
def _without_hypothesis() -> Iterator[None]:
    if _HYPOTHESIS in sys.modules:
        yield
        return
    sys.modules[_HYPOTHESIS] = None  # type: ignore[assignment] # this is how Python notes what cannot be imported
    try:
        yield
    finally:
        del sys.modules[_HYPOTHESIS]


with _without_hypothesis():
    from kio.index import load_request_schema, load_response_schema

__all__ = ["api_name", "load_request_schema", "load_response_schema"]


@cache
def api_name(key: int, version: int) -> str:
    """What Kafka calls an API."""
    return load_request_schema(key, version).__name__.removesuffix("Request")
