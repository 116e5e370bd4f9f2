"""The power fails after every single file operation, and again during every start that follows.

Each history is run once on a recorded disk. Then, for every operation of it, disks are made that a power cut at that
moment may leave; each is started on and judged against what had been promised; and each of those starts is itself cut
short at every operation.
"""

from dataclasses import replace

import pytest

from kohort.config import FlushMode
from kohort.errors import StorageFailed
from kohort.log.crash_images import Disk, crash_points
from kohort.log.recorded_files import DirSynced, Opened, Synced, Unlinked
from tests.log.crash_histories import (
    HISTORIES,
    NEW,
    SMALL,
    checkpoint,
    clean,
    close,
    create,
    data,
    delete,
    end,
    flush,
    later,
    put,
    roll,
    start,
)
from tests.log.crash_judgement import Campaign, judge, read_log
from tests.log.crash_site import CONFIG, MAIN, MARKER, NOTHING, Site, open_directory
from tests.log.tally import Tally
from tests.slow import nightly


def _campaign(name: str, **limits: int) -> Campaign:
    config, steps = HISTORIES[name]
    return Campaign(Site(NOTHING, config).run(steps), **limits)


@pytest.mark.parametrize("name", HISTORIES)
def test_a_power_cut_at_any_moment_breaks_no_promise(name: str, tally: Tally) -> None:
    campaign = _campaign(name, limit=24, second_limit=0).run()
    tally.count(campaign.images)
    assert campaign.violations == []


@nightly
@pytest.mark.parametrize("name", HISTORIES)
def test_a_second_power_cut_while_starting_breaks_no_promise(name: str, tally: Tally) -> None:
    campaign = _campaign(name, limit=4, second_limit=2).run()
    tally.count(campaign.images)
    assert campaign.violations == []


@pytest.mark.parametrize("journal_bytes", [1, 1 << 20], ids=["a round", "everything"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_power_cut_breaks_no_promise_that_a_journal_has_given(name: str, journal_bytes: int, tally: Tally) -> None:
    """A journal of one round, and one of all there is."""
    config, steps = HISTORIES[name]
    campaign = Campaign(Site(NOTHING, config, journal_bytes=journal_bytes).run(steps), limit=8, second_limit=0).run()
    tally.count(campaign.images)
    assert campaign.violations == []


@nightly
@pytest.mark.parametrize("name", HISTORIES)
def test_a_second_power_cut_while_starting_breaks_no_promise_that_a_journal_has_given(name: str, tally: Tally) -> None:
    config, steps = HISTORIES[name]
    campaign = Campaign(Site(NOTHING, config, journal_bytes=350).run(steps), limit=3, second_limit=1).run()
    tally.count(campaign.images)
    assert campaign.violations == []


@pytest.mark.parametrize("name", ["appends and syncs", "transactions"])
def test_every_byte_of_a_journal_is_a_place_to_fail(name: str, tally: Tally) -> None:
    config, steps = HISTORIES[name]
    campaign = Campaign(Site(NOTHING, config, journal_bytes=1 << 20).run(steps), limit=60, second_limit=0)
    tally.count(campaign.run(every_byte=True).images)
    assert campaign.violations == []


@pytest.mark.parametrize("kind", [Synced, DirSynced])
def test_the_harness_finds_what_a_disk_that_ignores_the_syncs_of_a_journal_breaks(kind: type) -> None:
    config, steps = HISTORIES["appends and syncs"]
    campaign = Campaign(Site(NOTHING, config, journal_bytes=1 << 20).run(steps), limit=10, second_limit=0)
    campaign.run(ignored=lambda done: isinstance(done, kind))
    assert campaign.violations


def test_a_log_that_leaves_syncs_to_the_system_loses_its_end_at_most(tally: Tally) -> None:
    """Nothing is promised then, but what a cleaning takes away must not be missed after a power cut."""
    steps = [
        *NEW,
        put(b"a"),
        data(7, (b"a", b"2")),
        roll,
        put(b"a", b"3"),
        data(8, (b"b", b"1")),
        roll,
        end(7, commit=False),
        end(8, commit=True),
        clean,
        put(b"b", b"2"),
        roll,
        put(b"a", b"4"),
        later,
        clean,
        put(b"c"),
    ]
    campaign = Campaign(Site(NOTHING, CONFIG, FlushMode.OS).run(steps), limit=24, second_limit=1).run()
    tally.count(campaign.images)
    assert campaign.violations == []


def test_every_byte_of_a_write_is_a_place_to_fail(tally: Tally) -> None:
    for name in ("appends and syncs", "transactions"):
        campaign = _campaign(name, limit=1000, second_limit=0).run(every_byte=True)
        tally.count(campaign.images)
        assert campaign.violations == []


@pytest.mark.parametrize("name", ["appends and syncs", "a roll", "a clean", "a shutdown with nothing synced"])
def test_the_harness_finds_what_a_disk_that_ignores_syncs_breaks(name: str) -> None:
    campaign = _campaign(name, limit=10, second_limit=0).run(ignored=lambda done: isinstance(done, Synced))
    assert campaign.violations


@pytest.mark.parametrize("name", ["appends and syncs", "a clean", "a deleted partition"])
def test_the_harness_finds_what_a_disk_that_ignores_the_syncs_of_directories_breaks(name: str) -> None:
    campaign = _campaign(name, limit=10, second_limit=0).run(ignored=lambda done: isinstance(done, DirSynced))
    assert any("vanished" in violation or "came back" in violation for violation in campaign.violations)


def test_the_harness_finds_a_swap_whose_first_step_was_not_synced() -> None:
    """The `.cleaned` file must have its name before anything else of a swap has one."""
    campaign = _campaign("a clean", limit=24, second_limit=0)
    operations = campaign.site.recording.operations
    cleaned = next(
        n for n, done in enumerate(operations) if isinstance(done, Opened) and done.path.endswith(".cleaned")
    )
    first_sync = next(n for n, done in enumerate(operations) if n > cleaned and isinstance(done, DirSynced))
    careless = operations[first_sync]
    campaign.run(ignored=lambda done: done is careless)
    assert any("a reader sees" in violation for violation in campaign.violations)


def test_the_harness_finds_a_marker_that_is_not_removed_before_the_start() -> None:
    campaign = _campaign("a clean shutdown and a start", limit=10, second_limit=0)
    campaign.run(ignored=lambda done: done == Unlinked(MARKER))
    assert any("clean shutdown" in violation for violation in campaign.violations)


def test_a_second_process_is_refused() -> None:
    site = Site().run([*NEW, put(b"a"), flush])
    before = site.disk.image()
    with pytest.raises(StorageFailed, match="another process"):
        open_directory(site.files, site.clock, site.config)
    assert site.disk.image() == before
    site.close()
    open_directory(site.files, site.clock, site.config).close()


def test_recovered_logs_go_on(tally: Tally) -> None:
    """After each crash the log takes new batches behind the old ones, and a clean shutdown keeps them all."""
    site = Site(NOTHING, SMALL).run(HISTORIES["transactions over segments"][1])
    for number, disk in enumerate(crash_points(site.start_image, site.recording.operations)):
        for image in disk.images(12):
            expected = site.ledger.expected(number)
            again = Site(image, SMALL)
            again.start()
            if MAIN not in again.directory.logs:
                continue
            tally.count(1)
            before = read_log(again.log)
            again.run([put(b"new"), flush, put(b"newer"), close, start])
            assert again.directory.was_clean
            after = read_log(again.log)
            assert (after[:-2], len(after)) == (before, len(before) + 2)
            assert judge(again.disk.image(), replace(expected, batches=(*before, *after[-2:]))).problems == []


def test_a_partition_made_again_after_a_crash_in_its_deletion_starts_afresh(tally: Tally) -> None:
    site = Site(NOTHING, SMALL).run([*NEW, *(put(key) for key in (b"a", b"b", b"c")), flush, checkpoint, delete, close])
    for disk in crash_points(site.start_image, site.recording.operations):
        for image in disk.images(6):
            again = Site(image, SMALL)
            again.start()
            if MAIN in again.directory.logs:
                continue
            again.run([create, put(b"d"), flush])
            left = Disk(again.start_image)
            for operation in again.recording.operations:
                left.apply(operation)
            for found in left.images(4):
                tally.count(1)
                assert judge(found, again.ledger.expected(again.operations), SMALL).problems == []
