"""A partition of `__consumer_offsets` that is open for writing, replayed to its end."""

from kohort.errors import CorruptLog
from kohort.log.answers import ReadUpTo
from kohort.log.partition import Log
from kohort.records.state import State


def replay_log(log: Log, read_size: int) -> State:
    """The groups and offsets in a log, read in stretches of about `read_size` bytes; a larger batch is read whole.

    What cannot be read is `CorruptLog`: half of a state is worse than none. An empty log costs nothing, not even the
    import of the compiled code.
    """
    if log.log_start_offset == log.log_end_offset:
        return State()
    import numpy as np

    from kohort.records.columns import Buffers, decode
    from kohort.records.finish import finish
    from kohort.records.replay import Piece, Rule

    piece, buffers = Piece(Rule.POSITION), Buffers()
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        fetched = log.read(offset, read_size, min_one=True, up_to=ReadUpTo.LOG_END)
        if fetched.next_offset <= offset:
            raise CorruptLog(f"nothing can be read at offset {offset}, the log ends at {end}", path=log.path)
        data = np.frombuffer(fetched.records, np.uint8)
        while len(data):
            window = decode(data, piece.keys, buffers=buffers)
            piece.append(window.columns)
            data = data[window.consumed :]
        offset = fetched.next_offset
    return finish([piece])
