"""One partition: what is there already is compared, the rest is sent, and read back.

The copy must be a beginning of what is to be copied, record for record; whatever else is there is not ours to mend. So
who goes on after a run that was killed knows that nothing is lost and nothing is there twice.
"""

from collections.abc import Iterator
from itertools import chain

from kohort.admin.cluster import Cluster
from kohort.errors import CorruptLog
from kohort.log.cluster import TopicPartition
from kohort.log.source import OnDamage, OnProgress
from kohort.migration.digest import Digest
from kohort.migration.offset_map import OffsetMap
from kohort.migration.packing import Outgoing, Packer
from kohort.migration.reading import Isolation, Refused, bounds, fetch
from kohort.migration.report import PartitionReport
from kohort.migration.source import Fate, SourceBatch, SourcePartition
from kohort.migration.writer import Writer
from kohort.records.batch import Record, read_records


class PartitionCopy:
    """The work on one partition."""

    def __init__(self, cluster: Cluster, source: SourcePartition, report: PartitionReport, on_damage: OnDamage) -> None:
        self._cluster = cluster
        self._source = source
        self._report = report
        self._on_damage = on_damage
        self._where: TopicPartition = (report.topic, report.partition)
        self._digest = Digest()
        self.offsets = OffsetMap()
        report.source_start, report.source_end = source.start, source.stable_end
        report.source_log_end = source.log_end

    def run(self, *, exists: bool, execute: bool, on_progress: OnProgress) -> None:
        """`Refused` if it cannot be done."""
        there = bounds(self._cluster, self._where) if exists else None
        if there is not None and there.start:
            raise Refused(f"the destination's log begins at offset {there.start}: what was before it is deleted")
        writer = Writer(self._cluster, self._where) if execute else None
        self._report.destination_end = 0 if there is None else there.end
        found = iter(()) if there is None else self._found()
        read_back = self._copy(found, writer, on_progress)
        if next(found, None) is not None or (self._report.destination_end or 0) > self.offsets.end:
            raise Refused(f"the destination holds records from offset {self.offsets.end} on that the source does not")
        self._report.found = read_back.records
        self._report.copied = self._digest.records - read_back.records
        self._report.checksum = self._digest.text()
        if execute:
            self._verify(read_back)

    def _found(self) -> Iterator[Record]:
        """What is there already, and what still came in while it was read: it may be of a run that was killed."""
        position = 0
        while (end := bounds(self._cluster, self._where).end) > position:
            self._report.destination_end = end
            yield from chain.from_iterable(_records(self._cluster, self._where, position, end))
            position = end

    def _copy(self, found: Iterator[Record], writer: Writer | None, on_progress: OnProgress) -> Digest:
        """Returns the digest of what was there already."""
        read_back: Digest | None = None
        packer = Packer(0)
        for batch in self._source.batches(self._told, on_progress):
            records = self._seen(batch)
            same = 0
            if read_back is None:
                same = self._compare(records, found)
                self._digest.add(records[:same])
                if same < len(records):
                    read_back = self._digest.copy()
                    packer = Packer(read_back.records)
            self._note(records)
            if same < len(records):
                self._digest.add(records[same:])
                if writer is not None:
                    _send(writer, packer.add(batch, records[same:]))
        if writer is not None:
            _send(writer, packer.flush())
        return self._digest.copy() if read_back is None else read_back

    def _seen(self, batch: SourceBatch) -> tuple[Record, ...]:
        """The records of a batch that a reader of committed data sees."""
        header = batch.header
        if batch.fate is Fate.ABORTED:
            self._report.aborted += header.record_count
            return ()
        if batch.fate is Fate.CONTROL:
            self._report.control += header.record_count
            return ()
        try:
            records = read_records(header, batch.data)
        except CorruptLog as damage:
            topic, number = self._where
            self._told(CorruptLog(damage.reason, path=f"{topic}-{number}, the batch at offset {header.base_offset}"))
            return ()
        start = self._source.start
        if records and records[0].offset < start:
            return tuple(record for record in records if record.offset >= start)
        return records

    def _compare(self, records: tuple[Record, ...], found: Iterator[Record]) -> int:
        """How many of the records are there; all that is there must be the same."""
        for number, record in enumerate(records):
            other = next(found, None)
            if other is None:
                return number
            expected = self.offsets.end + number
            if other.offset != expected or other[1:] != record[1:]:
                raise Refused(f"the destination holds something else at offset {expected}")
        return len(records)

    def _note(self, records: tuple[Record, ...]) -> None:
        if records and records[-1].offset - records[0].offset == len(records) - 1:
            self.offsets.add(records[0].offset, len(records))
        else:
            for record in records:
                self.offsets.add(record.offset)

    def _verify(self, read_back: Digest) -> None:
        """Read what was sent, and compare."""
        end = bounds(self._cluster, self._where).end
        self._report.destination_end = end
        for records in _records(self._cluster, self._where, read_back.records, end):
            read_back.add(records)
        self._report.verified = end == read_back.records and read_back.text() == self._digest.text()
        if not self._report.verified:
            told = f"{read_back.records} records up to offset {end}, checksum {read_back.text()}"
            raise Refused(f"what was read back is not what was sent: {told}")

    def _told(self, damage: CorruptLog) -> None:
        self._report.damaged += 1
        self._on_damage(damage)


def _send(writer: Writer, batches: Iterator[Outgoing]) -> None:
    for batch in batches:
        writer.put(batch)


def _records(cluster: Cluster, where: TopicPartition, start: int, end: int) -> Iterator[tuple[Record, ...]]:
    """Those of the copy from one offset up to another, batch by batch."""
    for fetched in fetch(cluster, where, start, end, Isolation.READ_UNCOMMITTED):
        for header in fetched.headers:
            if header.is_control:
                continue
            try:
                records = read_records(header, fetched.data)
            except CorruptLog as damage:
                raise Refused(f"the destination's batch at offset {header.base_offset}: {damage.reason}") from None
            if records and start <= records[0].offset and records[-1].offset < end:
                yield records
            else:
                yield tuple(record for record in records if start <= record.offset < end)
