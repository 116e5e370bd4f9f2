"""Help for tests of the replay: logs cut into pieces, folded apart and merged."""

from collections.abc import Sequence

import numpy as np

from kohort.records.columns import decode
from kohort.records.offsets_topic import CoordinatorKey, GroupKey, OffsetKey
from kohort.records.replay import Piece, Rule
from tests.records.serial_load import Loaded


def array(data: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(data, np.uint8)


def piece_of(data: bytes, rule: Rule) -> Piece:
    piece = Piece(rule)
    piece.append(decode(array(data), piece.keys).columns)
    return piece


def appended(parts: Sequence[bytes], rule: Rule) -> Piece:
    """The same bytes, folded part by part into one piece."""
    piece = Piece(rule)
    for part in parts:
        piece.append(decode(array(part), piece.keys).columns)
    return piece


def merged(pieces: list[Piece], choices: Sequence[int]) -> Piece:
    """Merge neighbours until one piece is left; `choices` says which ones first, and so sets the brackets."""
    pieces = list(pieces)
    for choice in choices:
        if len(pieces) > 1:
            at = choice % (len(pieces) - 1)
            pieces[at : at + 2] = [pieces[at].merge(pieces[at + 1])]
    while len(pieces) > 1:
        pieces[0:2] = [pieces[0].merge(pieces[1])]
    return pieces[0]


def outcome(piece: Piece) -> Loaded:
    """What a piece says, in the words of the serial load."""
    loaded = Loaded()
    for number, position, raw in piece.positions_and_values(piece.standing()):
        value = (position, raw)
        match piece.keys.key(number):
            case OffsetKey(group, topic, partition):
                loaded.offsets[group, topic, partition] = value
            case GroupKey(group):
                loaded.groups[group] = value[1]
            case CoordinatorKey():
                loaded.others[piece.keys.raw(number)] = value[1]
    for producer_id, number, put in piece.pending():
        key = piece.keys.key(number)
        assert isinstance(key, OffsetKey)
        offset_id = (key.group, key.topic, key.partition)
        loaded.pending.setdefault(producer_id, {})[offset_id] = (put.position, put.value)
    for number in piece.gone():
        key = piece.keys.key(number)
        if isinstance(key, GroupKey):
            loaded.removed_groups.add(key.group)
    known = {key[0] for key in loaded.offsets} | {key[0] for puts in loaded.pending.values() for key in puts}
    loaded.groups_by_offsets = known - loaded.groups.keys()
    return loaded
