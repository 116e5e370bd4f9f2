"""Requests turned into batches and answers by compiled code, for `short_way.py`."""

import struct
from typing import NamedTuple

import numpy as np

from kohort.broker.compiled_commits import FIRST_TOPIC, FOUND_SIZE, TOPICS, transcode
from kohort.group.requests import Committer, GenerationId, GroupId, MemberId
from kohort.group.written_commits import WrittenCommits
from kohort.records.finished_batch import FinishedBatch

_BATCH_ROOM = 1 << 20
_ANSWER_ROOM = 1 << 18
_FOUND = struct.Struct(f"{FIRST_TOPIC + 3}q")
_MOST_KNOWN = 4096
_LONGEST_KNOWN = 512
"""Longer names are read anew each time, so that what is remembered stays small."""


class CommitNames(NamedTuple):
    """What does not change from one commit of a member to the next."""

    who: Committer
    topics: tuple[str, ...]


class TranscodedCommit(NamedTuple):
    """A request, as far as it must be known, and what becomes of it."""

    names: CommitNames
    highest: tuple[int, ...]
    """The highest partition of each topic."""
    commits: WrittenCommits
    answer: bytes
    """If all is well."""


class CommitTranscoder:
    """Turns requests into batches and answers. One thread calls it: what it writes into is used again."""

    def __init__(self, most_metadata: int) -> None:
        self._most_metadata = most_metadata
        self._request = np.empty(_BATCH_ROOM, np.uint8)
        self._request_view = self._request.data
        self._batch = np.empty(_BATCH_ROOM, np.uint8)
        self._answer = np.empty(_ANSWER_ROOM, np.uint8)
        self._shape = np.empty(_ANSWER_ROOM, np.uint8)
        self._found = np.zeros(FOUND_SIZE, np.int64)
        self._views = self._batch.data, self._answer.data, self._shape.data, self._found.data
        self._known: dict[tuple[int, bytes], CommitNames] = {}
        """By version and bytes: whoever commits does so again and again."""

    def transcode(self, frame: bytes, body_at: int, version: int, now_ms: int) -> TranscodedCommit | None:
        """None for a request that is not plain."""
        if len(frame) > _BATCH_ROOM:
            return None
        self._request_view[: len(frame)] = frame
        records = transcode(
            self._request,
            len(frame),
            body_at,
            version,
            now_ms,
            self._most_metadata,
            self._batch,
            self._answer,
            self._shape,
            self._found,
        )
        if records < 0:
            return None
        batch, answer, shape, found_view = self._views
        found = _FOUND.unpack_from(found_view)
        _, _, _, _, _, _, _, batch_size, answer_size, shape_size, _, topics, name, name_size, highest = found
        key = (version, frame[body_at : name + name_size])
        names = self._known.get(key) if topics == 1 else None
        if names is None:
            names = self._read_names(frame, found)
            if names is None:
                return None
            if topics == 1 and len(key[1]) <= _LONGEST_KNOWN:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = names
        finished = FinishedBatch(bytearray(batch[:batch_size]), records, now_ms)
        return TranscodedCommit(
            names,
            (highest,) if topics == 1 else tuple(self._found[FIRST_TOPIC + 2 : FIRST_TOPIC + 3 * topics : 3].tolist()),
            WrittenCommits(finished, bytes(shape[:shape_size])),
            bytes(answer[:answer_size]),
        )

    def _read_names(self, frame: bytes, found: tuple[int, ...]) -> CommitNames | None:
        """None if they are no text."""
        group, group_size, generation_id, member, member_size, instance, instance_size, *_ = found
        places = self._found[FIRST_TOPIC : FIRST_TOPIC + 3 * found[TOPICS]].tolist()
        try:
            who = Committer(
                GroupId(frame[group : group + group_size].decode()),
                MemberId(frame[member : member + member_size].decode()),
                GenerationId(generation_id),
                frame[instance : instance + instance_size].decode() if instance_size >= 0 else None,
            )
            topics = [frame[at : at + size].decode() for at, size in zip(places[::3], places[1::3], strict=True)]
        except UnicodeDecodeError:
            return None
        return CommitNames(who, tuple(topics))
