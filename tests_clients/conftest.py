"""A scene for each test, and a loud word about every client that was not tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests_clients.kinds import KINDS, Kind
from tests_clients.login import Login
from tests_clients.scene import Scene


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for kind in KINDS:
        if missing := kind.toolchain.missing():
            terminalreporter.write_sep("!", f"skipped: {missing} is not installed, {kind} was not tested", red=True)


@pytest.fixture
def settings() -> dict[str, str]:
    """Settings of the broker, under Kafka's names."""
    return {}


@pytest.fixture
def login() -> Login | None:
    """How clients get in, where they have to show something."""
    return None


@pytest.fixture
def scene(
    kind: Kind, settings: dict[str, str], login: Login | None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    if missing := kind.toolchain.missing():
        pytest.skip(f"{missing} is not installed")
    scene = Scene(kind, tmp_path, settings, login)
    failed = request.session.testsfailed
    yield scene
    if request.session.testsfailed > failed:
        scene.abandon()
    else:
        scene.end()
