"""`python -m tests.soak 600`: keep a broker busy for so many seconds and tell whether something grows."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests_clients.building import GO

from tests.soak.drift import drifts, table
from tests.soak.run import GROUPS, soak

LEAST_S = 240


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--groups", type=int, default=GROUPS)
    args = parser.parse_args()
    if args.seconds < LEAST_S:
        parser.error(f"what expires after a minute does not tell much in less than {LEAST_S} seconds")
    if lacks := GO.missing():
        sys.exit(f"{lacks} is not installed: the clients of the soak are written in it")
    sys.stdout.write(f"to repeat it: python -m tests.soak {args.seconds:.0f} --groups {args.groups}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-soak-") as temporary:
        soaked = soak(Path(temporary) / "data", args.seconds, args.groups, _tell)
    done = ", ".join(f"{times:,} {what}" for what, times in sorted(soaked.done.items()))
    refused = ", ".join(f"{times:,} {what}" for what, times in sorted(soaked.refusals.items()))
    found = drifts(soaked.samples)
    sys.stdout.write(f"{done}\nrefused on the way: {refused or 'nothing'}\n{table(found)}\n")
    if soaked.complaints:
        sys.exit(f"refused, and should not be: {dict(soaked.complaints)}")
    if leaks := [one.name for one in found if one.is_leak]:
        sys.exit(f"grows: {', '.join(leaks)}")
    sys.stdout.write("nothing grows\n")


def _tell(sample: dict[str, float]) -> None:
    sys.stderr.write("  ".join(f"{name} {value:.1f}" for name, value in sample.items()) + "\n")


if __name__ == "__main__":
    main()
