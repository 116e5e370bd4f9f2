"""`python -m tests.killing 200`: kill the broker so many times and tell how it went."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.killing.run import run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    sys.stdout.write(f"to repeat it: python -m tests.killing {args.kills} --seed {args.seed}\n")
    with tempfile.TemporaryDirectory(prefix="kohort-killing-") as temporary:
        told = run(Path(temporary) / "data", args.kills, args.seed)
    sys.stdout.write(
        f"{told.kills} kills, {told.commits} commits, {told.acknowledged} acknowledged, {told.reads} offsets read, "
        f"slowest start {told.slowest_start_s:.2f} s: nothing lost, nothing aborted seen\n"
    )


if __name__ == "__main__":
    main()
