"""Counts the disks that the crash tests have started on, and tells the sum at the end."""

import gc

import pytest
from xdist.remote import Producer

from tests.log.tally import PROPERTY, Tally
from tests.scheduling import SparkTogether, make_scheduler
from tests.store.everywhere import fits


class _Counter:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            test = report.nodeid.partition("[")[0]
            for name, value in report.user_properties:
                if name == PROPERTY and isinstance(value, int):
                    self._numbers[test] = self._numbers.get(test, 0) + value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._numbers:
            terminalreporter.write_line(f"crash images tried: {sum(self._numbers.values())}")
            for test, number in self._numbers.items():
                terminalreporter.write_line(f"  {number:7} {test}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Counter(), "crash images")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not fits(item.name)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if fits(item.name)]


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: the garbage collector need not look through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SparkTogether | None:
    return make_scheduler(config, log)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    return Tally(request.node)
