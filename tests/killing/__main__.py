"""`python -m tests.killing 200`: kill the broker so many times and tell how it went."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.killing.go_clients import missing
from tests.killing.killed import KilledBroker
from tests.killing.run import Told, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    sys.stdout.write(f"to repeat it: python -m tests.killing {args.kills} --seed {args.seed}\n")
    if lacks := missing():
        sys.stdout.write(f"{lacks} is not installed: only clients of librdkafka take part, none of franz-go\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="kohort-killing-") as temporary:
        told = run(KilledBroker(Path(temporary) / "data"), args.kills, args.seed, with_go=not lacks)
    sys.stdout.write(_text(told))


def _text(told: Told) -> str:
    lines = [
        f"{told.kills + told.kills_at_start} kills in {told.took_s:.0f} s, {told.kills_at_start} of them of a broker "
        f"that was not ready yet; a start took {told.median_start_s:.2f} s, the slowest {told.slowest_start_s:.2f} s",
        *(
            f"{name}: {heard.commits:,} commits and transactions, {heard.acknowledged:,} acknowledged, "
            f"{heard.refused_or_aborted:,} refused or aborted, {heard.unknown:,} without an answer; "
            f"{heard.reads:,} offsets read"
            for name, heard in told.clients.items()
        ),
        *([f"{told.generations:,} generations, no partition with two owners"] if told.generations else []),
        f"{told.compared} offsets at the end are the same in the files",
        "nothing lost, nothing aborted seen",
    ]
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    main()
