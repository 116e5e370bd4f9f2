"""A disk that takes its time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kohort.log.faulty_files import FaultyFiles
from kohort.log.simulated_files import SimulatedFiles


class SlowDisk(FaultyFiles):
    """Files whose syncs take until somebody lets them go."""

    def __init__(self) -> None:
        super().__init__(SimulatedFiles())
        self.may_sync = threading.Event()
        self.may_sync.set()

    @contextmanager
    def call(self, name: str, path: str) -> Iterator[None]:
        if name == "sync":
            assert self.may_sync.wait(30)
        with super().call(name, path):
            yield
