"""What is mutated, and which tests have to notice."""

from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).parents[2]
PACKAGE = TOP / "src" / "kohort"

_TOOLS = frozenset(
    {"crash_choices.py", "crash_images.py", "faulty_files.py", "recorded_files.py", "simulated_files.py", "__init__.py"}
)
"""Disks that tests bring along: not the product."""
_OF_CLUSTERS = frozenset({"cluster.py", "live.py", "security.py"})
"""They read from a running cluster: the tests that notice something start Spark, and take minutes."""
_SLOW = (
    "bit_flips",
    "concurrency",
    "crash",
    "faults",
    "golden",
    "hostile",
    "in_flight",
    "in_steps",
    "keeps_state",
    "live_clients",
    "model",
    "recovery",
    "roll",
    "stretch",
)
"""Tests that try everything, at length. They are asked about the module that they are called after and no other, so
what only they notice counts as not noticed."""


@dataclass(frozen=True, slots=True)
class Area:
    """Modules, relative to the package, and the directories or files of their tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def tests_of(self, module: str) -> list[str]:
        """Test files, those that are called like the module first."""
        stem = Path(module).stem
        files = [path for place in self.tests for path in _test_files(TOP / place)]
        asked = [path for path in files if stem in path.stem or not any(word in path.stem for word in _SLOW)]
        asked.sort(key=lambda path: (stem not in path.stem, path.stem))
        return [str(path.relative_to(TOP)) for path in asked]


def _test_files(place: Path) -> list[Path]:
    return sorted(place.glob("test_*.py")) if place.is_dir() else [place]


def _modules(package: str) -> tuple[str, ...]:
    paths = sorted((PACKAGE / package).glob("*.py"))
    return tuple(f"{package}/{path.name}" for path in paths if path.name not in _TOOLS | _OF_CLUSTERS)


AREAS = {
    "log": Area(_modules("log"), ("tests/log",)),
    "replay": Area(
        ("records/replay.py",),
        (
            "tests/records/test_replay.py",
            "tests/records/test_piece_bytes.py",
            "tests/records/test_hostile.py",
            "tests/records/test_golden.py",
        ),
    ),
    "group": Area(_modules("group"), ("tests/group",)),
}


def area_of(module: str) -> Area:
    for area in AREAS.values():
        if module in area.modules:
            return area
    raise ValueError(f"{module} is not mutated; these are: {', '.join(m for a in AREAS.values() for m in a.modules)}")
