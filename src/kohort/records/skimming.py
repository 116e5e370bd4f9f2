"""A quick look at records that somebody else has made, without taking them apart.

Nearly all batches are plain: records without headers, numbered from 0, in order, with times that rise from the batch's
own. `is_plain` says so for sure; of all others the codec says what they are.
"""


def is_plain(body: bytes, record_count: int, *, most_time_delta: int, needs_keys: bool) -> bool:
    """Whether `body` holds just so many records of format 2, all of them sound and without headers.

    Times are at most `most_time_delta` after the batch's, and with `needs_keys` each has a key. A number that takes
    more than three bytes is not plain.
    """
    at, end_of_all = 0, len(body)
    try:
        for number in range(record_count):
            size = body[at]
            at += 1
            if size >= 0x80:
                size, at = _longer(body, size, at)
            end = at + (size >> 1)
            if size & 1 or end > end_of_all:
                return False
            at += 1  # attributes
            time = body[at]
            at += 1
            if time >= 0x80:
                time, at = _longer(body, time, at)
            delta = body[at]
            at += 1
            if delta >= 0x80:
                delta, at = _longer(body, delta, at)
            if time & 1 or time >> 1 > most_time_delta or delta != number << 1:
                return False
            key = body[at]
            at += 1
            if key >= 0x80:
                key, at = _longer(body, key, at)
            if not key & 1:
                at += key >> 1
            elif needs_keys or key != 1:
                return False
            value = body[at]
            at += 1
            if value >= 0x80:
                value, at = _longer(body, value, at)
            if not value & 1:
                at += value >> 1
            elif value != 1:
                return False
            if at != end - 1 or body[at]:
                return False
            at = end
    except IndexError:
        return False
    return at == end_of_all


def _longer(body: bytes, first: int, at: int) -> tuple[int, int]:
    """The rest of an unsigned number of two or three bytes; an odd one, which nothing plain is, if it has more."""
    second = body[at]
    value = first & 0x7F | (second & 0x7F) << 7
    if second < 0x80:
        return value, at + 1
    third = body[at + 1]
    if third >= 0x80:
        return 3, at + 2
    return value | third << 14, at + 2
