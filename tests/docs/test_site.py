"""The site is built without a warning, and the links of the README lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import ROOT


def test_the_site_is_built_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    command = [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 15
    assert not list(tmp_path.rglob("*.py"))
    for page in pages:
        fetched = re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(https?:)?//', page.read_text())
        assert not fetched, page


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    own = [link for link in links if "://" not in link]
    assert len(own) > 10
    assert [link for link in own if not (ROOT / link.partition("#")[0]).exists()] == []


def test_pictures_are_small() -> None:
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert {picture.stem for picture in pictures} == {"live", "report", "terminal"}
    assert all(picture.stat().st_size < 200_000 for picture in pictures)
