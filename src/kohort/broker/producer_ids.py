"""Ids for idempotent producers, none of which is given twice, whatever happens in between.

Ids are taken in blocks, as Kafka does. The file tells where the next block begins and is on the disk before the first
id of the current one is given; what a restart leaves of a block is never used. A directory without the file may come
from another broker: its first block begins behind the ids that stand in its logs.
"""

import json
from collections.abc import Iterable

from kohort.errors import CorruptLog
from kohort.log.documents import Documents
from kohort.log.partition import Log

NAME = "producer-ids.json"
BLOCK_SIZE = 1_000

_VERSION = 1
_LAST_ID = (1 << 63) - 1


class ProducerIds:
    """The producer ids of one broker. `CorruptLog` if its file does not say where to go on."""

    def __init__(self, documents: Documents, logs: Iterable[Log]) -> None:
        self._documents = documents
        self._path = documents.place(NAME)
        self._block = iter(range(0))
        told = documents.read(NAME)
        if told is not None:
            self._next_block = self._read(told)
        else:
            known = (number for log in logs for number in log.producer_state.entries)
            self._write(1 + max(known, default=-1))

    def new(self) -> int:
        """An id that no producer had before. `StorageFailed` if the disk does not take note of its block."""
        number = next(self._block, None)
        if number is None:
            start = self._next_block
            self._write(start + BLOCK_SIZE)
            self._block = iter(range(start, start + BLOCK_SIZE))
            number = next(self._block)
        return number

    def _write(self, next_block: int) -> None:
        if next_block > _LAST_ID:
            raise CorruptLog("there are no producer ids left", path=self._path)
        told = {"version": _VERSION, "next_block": next_block}
        self._documents.write(NAME, json.dumps(told).encode())
        self._next_block = next_block

    def _read(self, data: bytes) -> int:
        try:
            told = json.loads(data)
            version, start = int(told["version"]), int(told["next_block"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptLog(f"it does not tell of producer ids: {error}", path=self._path) from error
        if version != _VERSION or not 0 <= start <= _LAST_ID:
            raise CorruptLog(f"version {version} with a block that begins at {start}", path=self._path)
        return start
