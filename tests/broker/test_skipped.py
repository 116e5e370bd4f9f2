"""The page about what is not served tells the truth: all of it, and nothing that is."""

import re
from pathlib import Path

from kio.schema.index import api_key_map, schema_name_map

from kohort.broker.api import all_apis

PAGE = (Path(__file__).parents[2] / "docs" / "skipped.md").read_text(encoding="utf-8")
WITHOUT, PARTS = PAGE.split("## Versions of what is served")


def name_of(api_key: int) -> str:
    """As Kafka writes it."""
    return api_key_map[api_key].title().replace("_", "")


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| API"))
    ]


def test_every_api_that_is_not_served_is_named_and_no_other() -> None:
    named = [name.strip() for first, *_ in rows(WITHOUT) for name in first.split(",")]
    assert sorted(named) == sorted(name_of(key) for key in api_key_map if key not in all_apis())


def test_every_version_that_is_not_served_is_named_and_no_other() -> None:
    told = {}
    for name, served, _ in rows(PARTS):
        first, last = re.fullmatch(r"(\d+)–(\d+)", served).groups()
        told[name] = (int(first), int(last))
    partly = {
        name_of(key): (api.first, api.last)
        for key, api in all_apis().items()
        if (api.first, api.last) != (min(schema_name_map[api_key_map[key]]), max(schema_name_map[api_key_map[key]]))
    }
    assert told == partly


def test_what_is_said_of_a_version_that_is_not_served_is_said_of_that() -> None:
    for _, served, reasons in rows(PARTS):
        last = int(served.rpartition("–")[2])
        assert int(re.match(r"\d+", reasons)[0]) == last + 1
