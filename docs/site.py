"""What `mkdocs.yml` asks for while the site is built: links that lead out of `docs/` become plain words.

On the pages as they stand in the repository they lead to its files; the site has no copies of those.
"""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\[([^\]\n]*)\]\((\.\./[^)\s#]*)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page. A link to a file that is not there stays, and fails the build."""
    here = ROOT / "docs" / Path(page.file.src_uri).parent

    def plain(link: re.Match[str]) -> str:
        target = (here / link[2]).resolve()
        leads_out = not target.is_relative_to(ROOT / "docs") and target.is_relative_to(ROOT) and target.exists()
        return link[1] if leads_out else link[0]

    return _LINK.sub(plain, markdown)
