"""All targets: importing the modules registers them."""

from tests.fuzzing import batches, compiled, coordinator_records, logins, requests
from tests.fuzzing.target import TARGETS, Target

__all__ = ["TARGETS", "Target", "batches", "compiled", "coordinator_records", "logins", "requests"]
