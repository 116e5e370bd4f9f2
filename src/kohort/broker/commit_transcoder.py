"""Requests turned into batches and answers by compiled code, for `short_way.py`."""

from typing import NamedTuple

import numpy as np

from kohort.broker.compiled_commits import FIRST_TOPIC, FOUND_SIZE, transcode
from kohort.group.requests import GenerationId, GroupId, MemberId
from kohort.group.written_commits import WrittenCommits
from kohort.records.finished_batch import FinishedBatch

_BATCH_ROOM = 1 << 20
_ANSWER_ROOM = 1 << 18


class TranscodedCommit(NamedTuple):
    """A request, as far as it must be known, and what becomes of it."""

    group_id: GroupId
    member_id: MemberId
    generation_id: GenerationId
    group_instance_id: str | None
    topics: list[tuple[str, int]]
    """Names, and the highest partition of each."""
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
        self._views = self._batch.data, self._answer.data, self._shape.data

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
        found = self._found[: FIRST_TOPIC + 3].tolist()
        (
            group,
            group_size,
            generation_id,
            member,
            member_size,
            instance,
            instance_size,
            batch_size,
            answer_size,
            shape_size,
            _,
            topics,
            *places,
        ) = found
        if topics > 1:
            places = self._found[FIRST_TOPIC : FIRST_TOPIC + 3 * topics].tolist()
        try:
            names = [
                (frame[places[at] : places[at] + places[at + 1]].decode(), places[at + 2])
                for at in range(0, 3 * topics, 3)
            ]
            group_id = frame[group : group + group_size].decode()
            member_id = frame[member : member + member_size].decode() if member_size else ""
            instance_id = frame[instance : instance + instance_size].decode() if instance_size >= 0 else None
        except UnicodeDecodeError:
            return None
        batch, answer, shape = self._views
        finished = FinishedBatch(bytearray(batch[:batch_size]), records, now_ms)
        return TranscodedCommit(
            GroupId(group_id),
            MemberId(member_id),
            GenerationId(generation_id),
            instance_id,
            names,
            WrittenCommits(finished, bytes(shape[:shape_size])),
            bytes(answer[:answer_size]),
        )
