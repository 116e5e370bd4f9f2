"""What is called plain at a quick look is what the codec reads, and most of what producers send is plain."""

import random

import pytest

from kohort.errors import CorruptLog
from kohort.records.batch import Header, Record, RecordBatch, decode_records, open_body, read_header
from kohort.records.skimming import is_plain

TIME = 1_700_000_000_000
MOST = 60_000


def batch(records: list[Record]) -> tuple[bytes, bytes]:
    """A batch and its body."""
    data = RecordBatch.build(records).encode()
    return data, open_body(read_header(data), data)


def plain_records(noise: random.Random) -> list[Record]:
    return [
        Record(
            number,
            TIME + noise.choice((0, 1, 63, 64, 8_191, 8_192, MOST)) * bool(number),
            noise.choice((b"", b"k", b"x" * 70, b"x" * 9_000)),
            noise.choice((None, b"", b"v" * 63, b"v" * 64, b"v" * 1_024, b"v" * 20_000)),
        )
        for number in range(noise.choice((1, 2, 100, 200)))
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_producers_send_is_plain(seed: int) -> None:
    records = plain_records(random.Random(seed))
    _, body = batch(records)
    assert is_plain(body, len(records), most_time_delta=MOST, needs_keys=True)
    assert not is_plain(body, len(records) + 1, most_time_delta=MOST, needs_keys=True)
    assert not is_plain(body, len(records) - 1, most_time_delta=MOST, needs_keys=True)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(Record(1, TIME, b"k", b"v", (Header("h", b"v"),)), id="headers"),
        pytest.param(Record(2, TIME, b"k", b"v"), id="a gap"),
        pytest.param(Record(1, TIME - 1, b"k", b"v"), id="an older time"),
        pytest.param(Record(1, TIME + MOST + 1, b"k", b"v"), id="a time too young"),
        pytest.param(Record(1, TIME, None, b"v"), id="no key"),
        pytest.param(Record(1, TIME, b"k", b"v" * 2_000_000), id="a huge value"),
    ],
)
def test_what_is_not_plain_is_left_to_the_codec(record: Record) -> None:
    _, body = batch([Record(0, TIME, b"k", b"v"), record])
    assert not is_plain(body, 2, most_time_delta=MOST, needs_keys=True)


def test_without_keys_a_batch_is_plain_where_none_are_asked_for() -> None:
    _, body = batch([Record(number, TIME, None, b"v") for number in range(10)])
    assert is_plain(body, 10, most_time_delta=MOST, needs_keys=False)


def test_damaged_records_are_plain_only_if_the_codec_reads_them() -> None:
    noise = random.Random(7)
    plain = 0
    for _ in range(3_000):
        records = plain_records(noise)[:5]
        data, body = batch(records)
        damaged = bytearray(body)
        for _ in range(noise.choice((1, 2))):
            position = noise.randrange(min(len(damaged), 40))
            match noise.randrange(3):
                case 0:
                    damaged[position] = noise.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
                case 1:
                    del damaged[position:]
                    break
                case _:
                    damaged.insert(position, noise.choice((0, 1, 2, 0x80)))
        if not is_plain(bytes(damaged), len(records), most_time_delta=MOST, needs_keys=True):
            continue
        plain += 1
        try:
            read = list(decode_records(read_header(data), bytes(damaged)))
        except CorruptLog as damage:
            raise AssertionError(f"called plain: {bytes(damaged[:60])!r}") from damage
        assert [record.offset for record in read] == list(range(len(records)))
        assert all(record.key is not None and 0 <= record.timestamp - TIME <= MOST for record in read)
    assert plain > 100
