"""The README, the tutorials and the page about `kohort migrate` do what they say: each of their code blocks is run."""

from pathlib import Path

import pytest

from tests.docs.blocks import ON_SPARK, ROOT, Session, WrongBlock, blocks_of, is_as_shown

PAGES = [ROOT / "README.md", ROOT / "docs" / "migrate.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def needs_spark(page: Path) -> bool:
    told = "".join(block.text for block in blocks_of(TEXTS[page]) if not block.not_run)
    return "spark.read" in told or any(f"$ kohort {name} " in told for name in ON_SPARK)


@pytest.mark.parametrize("page", [page for page in PAGES if not needs_spark(page)], ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        for block in blocks_of(TEXTS[page]):
            session.run(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    blocks = blocks_of(TEXTS[page])
    assert len(blocks) * 2 == sum(line.startswith("```") for line in TEXTS[page].splitlines())
    assert all(len(block.not_run) > 10 for block in blocks if block.not_run is not None)
    assert any(block.not_run is None for block in blocks)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ echo one\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ make nothing\n```\n",
        "```python\nassert False\n```\n",
        "```ruby\nputs 1\n```\n",
    ],
)
def test_a_wrong_block_is_found(tmp_path: Path, text: str) -> None:
    with Session(tmp_path) as session, pytest.raises(WrongBlock):
        session.run(blocks_of(text)[0])


def test_a_session_remembers(tmp_path: Path) -> None:
    page = '```python title="one.py"\nprint(1)\n```\n\n```console\n$ x=2\n$ python one.py; echo $x\n1\n2\n```\n'
    with Session(tmp_path) as session:
        for block in blocks_of(page):
            session.run(block)


def test_an_ellipsis_is_anything() -> None:
    assert is_as_shown("a   b\nc\nd\ne 12 f\n", ["a b", "…", "e … f"])
    assert not is_as_shown("a b\nc\n", ["a b"])
    assert is_as_shown("", [])
