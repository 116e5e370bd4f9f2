"""`make audit`: everything that can be said of the dependencies here. Exit code 1 if something is wrong with them.

What is known against a version is asked of the package index by pip-audit. Where that cannot be reached, one line says
that this was not checked; everything else is.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import click

from tests.audit.dependencies import differences, needed, pins, with_addresses

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 300


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    requirements = [*project["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned, wrong = pins(constraints)
    wrong += [f"{one}: comes from an address" for one in with_addresses([*requirements, *constraints.splitlines()])]
    names = needed(requirements)
    wrong += differences(names, pinned)
    wrong += conflicts()
    known, told = known_problems(ROOT / "constraints.txt")
    wrong += known
    for one in wrong:
        click.echo(f"wrong: {one}")
    if not wrong:
        click.echo(f"{len(names)} dependencies: pinned by version in constraints.txt, installed so, no conflict")
    click.echo(told)
    return 1 if wrong else 0


def conflicts() -> list[str]:
    """`pip check`: does everything that is installed fit together."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "check"],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return [] if done.returncode == 0 else done.stdout.splitlines()


def known_problems(constraints: Path) -> tuple[list[str], str]:
    """What is known against these versions, and a line that says what was asked."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
    command += ["--requirement", str(constraints), "--no-deps", "--disable-pip"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        told = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return [], "not checked: known vulnerabilities (pip-audit cannot ask its database from here)"
    asked = [one for one in told if "skip_reason" not in one]
    problems = [
        f"{one['name']} {one['version']}: {problem['id']}, repaired in: {', '.join(problem['fix_versions']) or '-'}"
        for one in asked
        for problem in one["vulns"]
    ]
    if len(asked) < len(told):
        left = len(told) - len(asked)
        return problems, f"not checked: known vulnerabilities of {left} of {len(told)} (the database cannot be asked)"
    return problems, f"nothing else is known against any of {len(told)} versions (pip-audit)"


if __name__ == "__main__":
    sys.exit(main())
