"""The page about clients is read from their tests and from what pins their versions."""

import re

from docs.clients import page, versions


def test_every_client_has_one_exact_version() -> None:
    assert len(versions()) == 5
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions().values())
    assert all(f"| {client} | {version} |" in page() for client, version in versions().items())


def test_a_client_that_lacks_something_has_a_dash_where_others_have_a_tick() -> None:
    rows = [line for line in page().splitlines() if "✓" in line]
    assert len(rows) > 20
    assert any(row.startswith("| a group grows to ten members and back to one | ✓ | ✓ | ✓ | ✓ |") for row in rows)
    assert any(row.startswith("| a pattern finds topics that are made later | ✓ | ✓ | – | – |") for row in rows)
