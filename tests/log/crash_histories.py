"""Small histories of a log: what a broker does to its storage, a few steps each."""

from dataclasses import replace

from kohort.config import LogConfig
from tests.log.crash_site import CONFIG, Site, Step
from tests.log.folding import Entry, marker, plain, transactional


def put(key: bytes, value: bytes | None = b"1") -> Step:
    return lambda site: site.append(plain([(key, value)]))


def put_all(*entries: Entry) -> Step:
    return lambda site: site.append(plain(entries))


def data(producer_id: int, *entries: Entry) -> Step:
    return lambda site: site.append(transactional(producer_id, entries))


def end(producer_id: int, *, commit: bool) -> Step:
    return lambda site: site.append(marker(producer_id, commit=commit))


def roll(site: Site) -> None:
    site.log.roll()


def checkpoint(site: Site) -> None:
    site.directory.checkpoint()


def later(site: Site) -> None:
    site.clock.advance(5000)


def tick(site: Site) -> None:
    site.directory.tick()


start, create, flush, clean, retain, delete, close, kill = (
    Site.start,
    Site.create,
    Site.flush,
    Site.clean,
    Site.retain,
    Site.delete,
    Site.close,
    Site.kill,
)

NEW = [start, create]
DELETING = replace(CONFIG, cleanup_policy=frozenset({"delete"}), retention_bytes=250, segment_bytes=200)
SMALL = replace(CONFIG, segment_bytes=200)

HISTORIES: dict[str, tuple[LogConfig, list[Step]]] = {
    "appends and syncs": (
        CONFIG,
        [*NEW, put(b"a"), flush, put_all((b"b", b"1"), (b"a", b"2")), put(b"c"), flush, put(b"d"), put(b"e")],
    ),
    "a roll": (
        SMALL,
        [*NEW, put(b"a"), put(b"b"), flush, put(b"c"), put(b"d"), put(b"e"), flush, put(b"f"), flush],
    ),
    "a batch over several sectors": (
        replace(CONFIG, segment_bytes=4000),
        [*NEW, put(b"a"), flush, put(b"b", b"x" * 1500), flush, put(b"c", b"y" * 700)],
    ),
    "transactions": (
        CONFIG,
        [
            *NEW,
            data(7, (b"a", b"1")),
            data(8, (b"b", b"1")),
            flush,
            end(7, commit=True),
            flush,
            data(7, (b"a", b"2")),
            end(8, commit=False),
            flush,
            put(b"b"),
            end(7, commit=False),
            flush,
        ],
    ),
    "transactions over segments": (
        SMALL,
        [
            *NEW,
            data(7, (b"a", b"1")),
            data(8, (b"b", b"1")),
            roll,
            end(8, commit=False),
            put(b"c"),
            flush,
            roll,
            end(7, commit=False),
            data(8, (b"b", b"2")),
            flush,
        ],
    ),
    "a clean": (
        CONFIG,
        [
            *NEW,
            put(b"a"),
            put(b"b"),
            roll,
            put(b"a", b"2"),
            put(b"c"),
            roll,
            put(b"b", b"2"),
            flush,
            clean,
            put(b"a", b"3"),
            flush,
        ],
    ),
    "cleans with tombstones": (
        CONFIG,
        [
            *NEW,
            put(b"a"),
            put(b"b"),
            roll,
            put(b"a", None),
            roll,
            flush,
            clean,
            later,
            put(b"b", None),
            roll,
            put(b"c"),
            flush,
            clean,
            later,
            clean,
            tick,
        ],
    ),
    "cleans in several groups": (
        replace(CONFIG, segment_bytes=150),
        [
            *NEW,
            put_all((b"a", b"1"), (b"b", b"1")),
            put_all((b"c", b"1"), (b"d", b"1")),
            put(b"a", None),
            put_all((b"e", b"1"), (b"c", None)),
            put(b"f"),
            flush,
            clean,
            later,
            put(b"e", b"2"),
            roll,
            flush,
            clean,
        ],
    ),
    "cleans with transactions": (
        CONFIG,
        [
            *NEW,
            data(7, (b"a", b"1")),
            data(8, (b"a", b"2"), (b"b", b"2")),
            roll,
            end(8, commit=False),
            put(b"c"),
            roll,
            end(7, commit=True),
            data(8, (b"c", b"3")),
            flush,
            clean,
            end(8, commit=True),
            roll,
            put(b"a", b"4"),
            roll,
            flush,
            clean,
            later,
            clean,
        ],
    ),
    "a clean of what is not synced": (
        CONFIG,
        [*NEW, put(b"a"), flush, roll, put(b"a", b"2"), clean, roll, put(b"b"), clean, put(b"a", b"3"), clean, flush],
    ),
    "a clean that leaves nothing": (
        CONFIG,
        [
            *NEW,
            put_all((None, b"1")),
            roll,
            put_all((None, b"2")),
            roll,
            put(b"a"),
            roll,
            put_all((None, b"3")),
            roll,
            flush,
            clean,
        ],
    ),
    "retention": (
        DELETING,
        [
            *NEW,
            put(b"a"),
            put(b"b"),
            put(b"c"),
            put(b"d"),
            put(b"e"),
            put(b"f"),
            flush,
            retain,
            later,
            put(b"g"),
            flush,
            tick,
        ],
    ),
    "retention of everything": (
        replace(DELETING, retention_bytes=-1, retention_ms=1000),
        [*NEW, put(b"a"), put(b"b"), put(b"c"), flush, later, retain, put(b"d"), flush],
    ),
    "a checkpoint": (
        SMALL,
        [*NEW, put(b"a"), flush, checkpoint, put(b"b"), put(b"c"), flush, put(b"d"), checkpoint, put(b"e")],
    ),
    "a clean shutdown and a start": (
        SMALL,
        [
            *NEW,
            put(b"a"),
            data(7, (b"b", b"1")),
            put(b"c"),
            close,
            start,
            end(7, commit=False),
            put(b"d"),
            flush,
            close,
            start,
        ],
    ),
    "a shutdown with nothing synced": (CONFIG, [*NEW, put(b"a"), put(b"b"), close, start, put(b"c"), close]),
    "a killed process": (
        SMALL,
        [
            *NEW,
            put(b"a"),
            flush,
            put(b"b"),
            kill,
            start,
            put(b"c"),
            flush,
            data(7, (b"d", b"1")),
            put(b"e"),
            kill,
            start,
            put(b"f"),
        ],
    ),
    "a killed process with a cleaner": (
        CONFIG,
        [
            *NEW,
            put(b"a"),
            roll,
            put(b"a", b"2"),
            roll,
            put(b"b"),
            flush,
            clean,
            kill,
            start,
            put(b"a", None),
            roll,
            flush,
            clean,
        ],
    ),
    "a deleted partition": (CONFIG, [*NEW, put(b"a"), flush, put(b"b"), delete, later, tick, close, start]),
}
