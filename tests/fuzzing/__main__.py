"""`python -m tests.fuzzing --seconds 300` fuzzes every target so long, two at a time; with names only these.

`python -m tests.fuzzing batches --repeat FILE` runs one input, as after a failure, and `--finding NAME` keeps it for
the tests. With `--keep` the smallest inputs that go every way become the corpus.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzzing.campaign import Campaign
from tests.fuzzing.corpus import keep_finding
from tests.fuzzing.targets import TARGETS

_AT_A_TIME = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all of them if none are named")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true", help="choose the corpus anew at the end")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run this input on the target, and no more")
    parser.add_argument("--finding", metavar="NAME", help="with --repeat: first keep the input under this name")
    args = parser.parse_args()
    unknown = set(args.targets) - set(TARGETS)
    if unknown or (args.repeat and len(args.targets) != 1) or (args.finding and not args.repeat):
        parser.error(f"no such target: {', '.join(unknown)}" if unknown else "--repeat takes one target")
    if args.repeat:
        data = args.repeat.read_bytes()
        if args.finding:
            keep_finding(args.targets[0], args.finding, data)
        TARGETS[args.targets[0]].run(data)
        return
    campaigns = [Campaign(TARGETS[name], args.seconds) for name in args.targets or TARGETS]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        is_well = list(pool.map(_run, campaigns))
    if args.keep:
        _say(f"{sum(campaign.keep() for campaign in campaigns)} inputs kept")
    sys.exit(not all(is_well))


def _run(campaign: Campaign) -> bool:
    is_well = campaign.run()
    _say(campaign.told())
    return is_well


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
