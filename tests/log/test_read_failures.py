"""A disk that cannot be read fails whoever asks, in our words, and nothing else.

Found by the simulation: after a start, what a log knows of its segments is read when it is first needed, and an error
there went past everybody as the operating system's own, ended housekeeping for good and kept a broker from starting.
"""

import errno
from collections.abc import Callable

import pytest

from kohort.errors import StorageFailed
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.partition import Log
from kohort.log.simulated_files import SimulatedFiles
from tests.log.log_bench import TIME, Bench, batch

ACTIONS: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append(batch("b")),
    "read": lambda log: log.read(0, 1 << 20),
    "look for a time": lambda log: log.offset_for_timestamp(TIME),
    "retention": lambda log: log.delete_old_segments(),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_finding_an_error_of_the_disk_is_told_as_one(action: str) -> None:
    bench = Bench(SimulatedFiles({"/data": None}), retention_ms=1 << 40, segment_ms=1 << 40)
    bench.segment(batch("a"))
    bench.append(batch("a2"))
    bench.log.close()
    counting = FaultyFiles(_copy(bench))
    opened = _opened(bench, counting)
    before = counting.calls
    ACTIONS[action](opened)
    calls = counting.calls - before
    assert calls
    for call in range(before, before + calls):
        files = FaultyFiles(_copy(bench), Fault(call=call, number=errno.EIO))
        log = _opened(bench, files)
        assert not files.failed
        with pytest.raises(StorageFailed, match="Input/output error"):
            ACTIONS[action](log)


def _copy(bench: Bench) -> SimulatedFiles:
    assert isinstance(bench.files, SimulatedFiles)
    return SimulatedFiles(bench.files.image())


def _opened(bench: Bench, files: FaultyFiles) -> Log:
    original, bench.files = bench.files, files
    try:
        return bench.open(clean=True)
    finally:
        bench.files = original
