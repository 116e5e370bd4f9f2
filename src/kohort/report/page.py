"""Data, style, script and plotly as one file. A browser is told to run nothing else, and to ask nobody."""

import base64
import hashlib
import re
from importlib import resources
from typing import Any

from kohort.report.text import inert_json

SCRIPTS = ("text.js", "tables.js", "plots.js", "groups.js", "one_group.js", "topic.js", "events.js", "main.js")
_PLACE = re.compile(r"<!--(\w+)-->")


def make_page(data: dict[str, Any]) -> str:
    """The file."""
    script = '"use strict";\n' + "".join(_static(name) for name in SCRIPTS)
    plotly = plotly_script()
    policy = (
        f"default-src 'none'; script-src '{_digest(plotly)}' '{_digest(script)}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    pieces = {
        "policy": policy,
        "style": _static("report.css"),
        "data": inert_json(data),
        "plotly": plotly,
        "script": script,
    }
    # One pass: what was put in is not looked at again.
    return _PLACE.sub(lambda place: pieces[place[1]], _static("page.html"))


def plotly_script() -> str:
    """plotly.js as the Python package of that name brings it."""
    text = resources.files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def _static(name: str) -> str:
    return resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
