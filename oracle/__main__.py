"""`make oracle`: the same request sequences sent to Apache Kafka and to kohort, compared field by field.

python -m oracle [--only NAME] [--full]
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from bench import kafka

from oracle.allowed import unfounded
from oracle.brokers import apache_kafka, kafka_data, kohort, kohort_data
from oracle.compare import COORDINATOR_ERRORS, Verdict, errors_in, judge
from oracle.exchange import change_places, stock, tell
from oracle.having import have_all, progress
from oracle.sequences import Sequence, all_sequences


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="these sequences; * stands for anything")
    parser.add_argument("--full", action="store_true", help="tell every differing field, not the first alone")
    args = parser.parse_args()
    sequences = {
        name: run
        for name, run in all_sequences().items()
        if not args.only or any(fnmatchcase(name, wanted) for wanted in args.only)
    }
    if not sequences:
        parser.error("there is no such sequence")
    if not kafka.available():
        sys.stdout.write("no Java or Maven here: nothing was compared\n")
        return 1
    # Processes that were started end with this one, however it ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="kohort-oracle-") as temporary:
        verdicts = compare(Path(temporary), sequences, is_exchange_wanted=not args.only)
    return report(verdicts, full=args.full)


def compare(work: Path, sequences: Mapping[str, Sequence], *, is_exchange_wanted: bool) -> list[Verdict]:
    """Both brokers one after the other; then again, each on what the other wrote."""
    progress(f"{len(sequences)} sequences with Apache Kafka {kafka.VERSION} ...")
    with apache_kafka(work / "kafka") as port:
        theirs = have_all(port, sequences)
        their_groups = stock(port) if is_exchange_wanted else {}
    progress("... and with kohort")
    with kohort(work / "kohort") as port:
        ours = have_all(port, sequences)
        our_groups = stock(port) if is_exchange_wanted else {}
    verdicts = [judge(name, theirs[name], ours[name]) for name in sequences]
    if is_exchange_wanted:
        if untried := COORDINATOR_ERRORS - errors_in(theirs):
            raise LookupError(f"no sequence makes Kafka answer {', '.join(sorted(untried))}")
        progress("... and each on the other's segments")
        change_places(kafka_data(work / "kafka"), kohort_data(work / "kohort"))
        with kohort(work / "kohort") as port:
            verdicts.append(judge("segments-of-kafka-under-kohort", their_groups, tell(port)))
        with apache_kafka(work / "kafka") as port:
            verdicts.append(judge("segments-of-kohort-under-kafka", tell(port), our_groups))
    return verdicts


def report(verdicts: list[Verdict], *, full: bool) -> int:
    out = sys.stdout.write
    width = max(len(verdict.name) for verdict in verdicts)
    for verdict in verdicts:
        out(f"{verdict.name:{width}}  {verdict.word:18}  {verdict.detail}".rstrip() + "\n")
        for difference in verdict.unexplained[1:] if full else ():
            out(f"{'':{width}}  {'':18}  {difference}\n")
    for allowed in (stale := unfounded()):
        out(f"docs/faithfulness.md does not say: {allowed.sentence}\n")
    words = [verdict.word for verdict in verdicts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("same", "allowed difference", "DIFFERENT"))
    out(f"{len(verdicts)} sequences: {counts}\n")
    return 1 if stale or "DIFFERENT" in words else 0


if __name__ == "__main__":
    sys.exit(main())
