"""The audit notices what is not pinned, what comes from an address, and what is not what was written down."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.audit.dependencies import differences, needed, normal, pins, with_addresses

ROOT = Path(__file__).resolve().parents[2]


def test_the_constraints_of_this_project_are_versions_and_nothing_else() -> None:
    found, wrong = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert wrong == []
    assert len(found) > 50


def test_everything_that_this_project_needs_is_pinned_and_installed_like_that() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(one for extra in extras for one in extra)]
    pinned, _ = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    names = needed(requirements)
    assert {"aiohttp", "multidict", "pytest"} <= names  # also what is needed by what is needed
    assert differences(names, pinned) == []
    assert with_addresses(requirements) == []


@pytest.mark.parametrize(
    "line",
    [
        "aiohttp",
        "aiohttp>=3",
        "aiohttp==3.*",
        "aiohttp @ https://example.org/aiohttp.whl",
        "git+https://example.org/aiohttp",
        "-e .",
        "--extra-index-url https://example.org",
        "https://example.org/aiohttp.whl",
    ],
)
def test_a_line_that_leaves_something_open_is_wrong(line: str) -> None:
    found, wrong = pins(f"click==8.1.7\n{line}\n")
    assert found == {"click": "8.1.7"}
    assert len(wrong) == 1
    assert wrong[0].startswith("line 2: ")


def test_a_name_that_stands_there_twice_is_wrong() -> None:
    assert pins("ast_serialize==1\nAst-Serialize==2\n# a remark\n\n")[1] == ["line 2: Ast-Serialize stands there twice"]


def test_what_is_not_as_it_is_written_down_is_told() -> None:
    click = version("click")
    assert differences({"click"}, {"click": click}) == []
    assert differences({"click"}, {"click": "0.1"}) == [f"click is {click}, pinned is 0.1"]
    assert differences({"click"}, {}) == [f"click {click} is needed and not pinned"]


def test_what_comes_from_an_address_is_told() -> None:
    good = ["click>=8", "numba>=0.61; python_version < '4'", "kohort[spark,dev]"]
    assert with_addresses(good) == []
    bad = ["click @ https://example.org/click.whl", "git+ssh://git@example.org/click"]
    assert with_addresses([*good, *bad]) == bad


def test_an_extra_counts_when_it_is_asked_for() -> None:
    assert normal("Pip_Audit") == "pip-audit"
    assert needed(["cachecontrol"]) < needed(["cachecontrol[filecache]"])
