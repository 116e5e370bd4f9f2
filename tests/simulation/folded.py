"""What stands in the log of the offsets topic, by a fold that shares nothing with the broker but how bytes are read."""

from collections.abc import Collection, Iterator

from kohort.log.simulated_files import SimulatedFiles
from kohort.records.batch import RecordBatch, read_batches
from kohort.records.offsets_topic import OffsetCommitValue, OffsetKey, decode_key, decode_value
from tests.log.folding import fold
from tests.simulation.disk import DATA
from tests.simulation.ledger import Key


def committed_offsets(files: SimulatedFiles, groups: Collection[str]) -> dict[Key, int]:
    """The offsets of these groups."""
    found: dict[Key, int] = {}
    for name in files.list_dir(DATA):
        if name.startswith("__consumer_offsets-"):
            for raw_key, (_, raw_value) in fold(_batches(files, f"{DATA}/{name}")).values.items():
                key = decode_key(raw_key)
                value = decode_value(key, raw_value)
                if isinstance(key, OffsetKey) and isinstance(value, OffsetCommitValue) and key.group in groups:
                    found[(key.group, key.partition)] = value.offset
    return found


def _batches(files: SimulatedFiles, path: str) -> Iterator[RecordBatch]:
    for name in sorted(name for name in files.list_dir(path) if name.endswith(".log")):
        file = files.open(f"{path}/{name}")
        yield from read_batches(file.read_at(0, file.size()))
        file.close()
