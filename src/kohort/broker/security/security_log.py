"""`__kohort_security`: what the broker knows of users and permissions, kept in a log of its own.

Each fact has a key, a row of strings that begins with its kind (`["acl", …]`, `["scram", user, mechanism]`), and tells
a JSON object; of each key the last record counts, and one without a value is the fact's end. Facts that change together
are one batch, so all of them are kept or none. The log is compacted like the coordinators', but no client ever sees it,
for it holds what passwords are checked against (`Topics` hides it).

A change counts when it is safe on the disk, not before: nobody is let in by what a power cut may take back. A log that
cannot be read keeps the broker from starting, for without it everybody might be refused, or let in.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kohort.broker.durable import Durable
from kohort.broker.leading import leader_epoch
from kohort.broker.topics import Topics
from kohort.errors import ClientError, CorruptLog, ErrorCode, StorageFailed
from kohort.log.answers import ReadUpTo
from kohort.log.partition import AppendOrigin, Log
from kohort.records.batch import Record, RecordBatch, read_batches

Key = tuple[str, ...]
Fact = Mapping[str, Any]
Told = Callable[[ErrorCode], None]

_READ_SIZE = 1 << 20


class SecurityLog:
    """All facts, as far as they are safe."""

    def __init__(self, topics: Topics, durable: Durable, now_ms: Callable[[], int]) -> None:
        self._topics = topics
        self._durable = durable
        self._now_ms = now_ms
        self._facts: dict[Key, Fact] = {}
        self._coming: dict[Key, Fact | None] = {}
        """What is written and not safe yet, as far as nothing newer is."""
        self.watchers: list[Callable[[Mapping[Key, Fact | None]], None]] = []
        """Called with facts that have changed, None for those that are no more."""
        log = topics.security_log
        if log is not None:
            self._load(log)

    def get(self, key: Key) -> Fact | None:
        return self._facts.get(key)

    def newest(self, key: Key) -> Fact | None:
        """What it will be when everything is safe: for whoever changes a part of it."""
        return self._coming[key] if key in self._coming else self._facts.get(key)

    def of_kind(self, kind: str) -> Iterator[tuple[Key, Fact]]:
        """All facts whose keys begin with this, in the order in which they came."""
        return ((key, fact) for key, fact in self._facts.items() if key[0] == kind)

    def change(self, changes: Mapping[Key, Fact | None], told: Told) -> None:
        """Keep these facts, or forget those that are None: all or none. `told` hears when that is safe, or why not."""
        now_ms = self._now_ms()
        records = [
            Record(number, now_ms, _json(list(key)), None if fact is None else _json(fact))
            for number, (key, fact) in enumerate(changes.items())
        ]
        try:
            log = self._topics.security_log or self._topics.create_security_log()
            log.append(
                RecordBatch.build(records).encode(), leader_epoch=leader_epoch(log), origin=AppendOrigin.COORDINATOR
            )
        except (ClientError, StorageFailed) as error:
            told(error.code)
            return

        self._coming.update(changes)

        def settle(error: ErrorCode) -> None:
            for key, fact in changes.items():
                if self._coming.get(key, key) is fact:
                    del self._coming[key]
            if error is ErrorCode.NONE:
                self._apply(changes)
            told(error)

        self._durable.then(log, log.log_end_offset, settle)

    def _apply(self, changes: Mapping[Key, Fact | None]) -> None:
        for key, fact in changes.items():
            if fact is None:
                self._facts.pop(key, None)
            else:
                self._facts[key] = fact
        for watch in self.watchers:
            watch(changes)

    def _load(self, log: Log) -> None:
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            fetched = log.read(offset, _READ_SIZE, min_one=True, up_to=ReadUpTo.LOG_END)
            if fetched.next_offset <= offset:
                raise CorruptLog(f"nothing can be read at offset {offset}, the log ends at {end}", path=log.path)
            for batch in read_batches(fetched.records):
                self._apply(dict(_decoded(record, log.path) for record in batch.records))
            offset = fetched.next_offset


def _decoded(record: Record, path: str) -> tuple[Key, Fact | None]:
    try:
        key = json.loads(record.key or b"")
        fact = None if record.value is None else json.loads(record.value)
    except (ValueError, RecursionError) as error:
        raise CorruptLog(f"the record at offset {record.offset} is not JSON: {error}", path=path) from error
    if not isinstance(key, list) or not key or not all(isinstance(part, str) for part in key):
        raise CorruptLog(f"the record at offset {record.offset} has no key that we write", path=path)
    if fact is not None and not isinstance(fact, dict):
        raise CorruptLog(f"the record at offset {record.offset} tells no fact", path=path)
    return tuple(key), fact


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
