"""The live page: one file of our own, and the rules under which browsers run it."""

import base64
import hashlib
import re
from importlib import resources
from typing import NamedTuple

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


class Page(NamedTuple):
    """Its bytes, and its Content-Security-Policy."""

    body: bytes
    policy: str


def load_page() -> Page:
    """Only the style and the script that stand in the file may run, and they may talk to nobody but this port."""
    text = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    style, script = _STYLE.search(text), _SCRIPT.search(text)
    if style is None or script is None:
        raise ValueError("page.html has no style or no script")
    policy = (
        f"default-src 'none'; style-src '{_digest(style[1])}'; script-src '{_digest(script[1])}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(text.encode(), policy)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
