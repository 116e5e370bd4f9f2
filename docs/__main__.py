"""Writes the documents that are generated, or says which of them are stale.

python -m docs [--check]
"""

import argparse
import sys
from pathlib import Path

from docs import clients, commands, groups, metrics, permissions, pipeline, settings, tables
from docs.behaviours import ROOT, coverage, faithfulness
from docs.states import draw
from docs.way import draw as draw_way


def documents() -> dict[Path, str]:
    return {
        ROOT / "docs" / "faithfulness.md": faithfulness(coverage()),
        ROOT / "docs" / "states.svg": draw(),
        ROOT / "docs" / "architecture.svg": draw_way(),
        ROOT / "docs" / "clients.md": clients.page(),
        ROOT / "docs" / "pipeline.md": pipeline.page(),
        ROOT / "docs" / "groups.md": groups.page(),
        ROOT / "docs" / "reference" / "commands.md": commands.page(),
        ROOT / "docs" / "reference" / "metrics.md": metrics.page(),
        ROOT / "docs" / "reference" / "permissions.md": permissions.page(),
        ROOT / "docs" / "reference" / "settings.md": settings.page(),
        ROOT / "docs" / "reference" / "tables.md": tables.page(),
    }


def is_stale(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs", description="Write the documents that are generated.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a document is stale")
    check = parser.parse_args().check
    stale = {path: text for path, text in documents().items() if is_stale(path, text)}
    for path, text in stale.items():
        if check:
            sys.stdout.write(f"{path.relative_to(ROOT)} is stale: python -m docs writes it anew\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
