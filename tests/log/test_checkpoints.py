"""Checkpoint files, the epochs of leadership among them, and whose directory it is."""

import pytest

from kohort.errors import CorruptLog, StorageFailed
from kohort.log import meta_properties
from kohort.log.checkpoints import read_leader_epochs, read_offsets, write_leader_epochs, write_offsets
from kohort.log.files import read_whole, write_whole
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.names import TopicPartition
from kohort.log.simulated_files import SimulatedFiles

OFFSETS = {TopicPartition("orders", 10): 5, TopicPartition("orders", 2): 7_000_000_000}


@pytest.fixture
def files() -> SimulatedFiles:
    return SimulatedFiles({"/d": None})


def test_offsets_stand_one_to_a_line_behind_a_version_and_a_count(files: SimulatedFiles) -> None:
    write_offsets(files, "/d/c", OFFSETS)
    assert read_whole(files, "/d/c") == b"0\n2\norders 2 7000000000\norders 10 5\n"
    assert read_offsets(files, "/d/c") == OFFSETS


def test_leader_epochs_stand_one_to_a_line_behind_a_version_and_a_count(files: SimulatedFiles) -> None:
    write_leader_epochs(files, "/d/c", [(0, 0), (2, 30)])
    assert read_whole(files, "/d/c") == b"0\n2\n0 0\n2 30\n"
    assert read_leader_epochs(files, "/d/c") == [(0, 0), (2, 30)]


def test_a_checkpoint_that_is_not_there_is_empty(files: SimulatedFiles) -> None:
    assert read_offsets(files, "/d/c") == {}
    assert read_leader_epochs(files, "/d/c") == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"0",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\nx\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 -1\n",
        b"0\n1\n../a 0 1\n",
        b"0\n1\n\xff 0 1\n",
    ],
)
def test_a_checkpoint_that_does_not_add_up_is_refused(files: SimulatedFiles, data: bytes) -> None:
    write_whole(files, "/d/c", data)
    with pytest.raises(CorruptLog, match="/d/c"):
        read_offsets(files, "/d/c")


def test_epochs_are_assigned_rising_and_saved_when_told(files: SimulatedFiles) -> None:
    epochs = LeaderEpochs.load(files, "/d/e")
    epochs.assign(0, 0)
    epochs.assign(0, 5)
    epochs.assign(2, 30)
    epochs.assign(1, 40)
    epochs.save()
    assert LeaderEpochs.load(files, "/d/e").entries == [(0, 0), (2, 30)]
    assert [epochs.epoch_of(offset) for offset in (0, 29, 30, 99)] == [0, 0, 2, 2]


def test_epochs_are_cut_at_either_end(files: SimulatedFiles) -> None:
    epochs = LeaderEpochs.load(files, "/d/e")
    for epoch, start in [(0, 0), (2, 30), (3, 50)]:
        epochs.assign(epoch, start)
    epochs.truncate_from_end(50)
    epochs.truncate_from_start(40)
    assert epochs.entries == [(2, 40)]
    assert epochs.epoch_of(10) == -1


def test_epochs_that_cannot_be_read_are_found_again_in_the_batches(files: SimulatedFiles) -> None:
    write_whole(files, "/d/e", b"nonsense")
    assert LeaderEpochs.load(files, "/d/e").entries == []


def test_a_new_directory_is_claimed_in_the_words_of_kafka(files: SimulatedFiles) -> None:
    meta_properties.claim(files, "/d/meta.properties", 3, 1_600_000_000_000)
    assert read_whole(files, "/d/meta.properties") == b"#\n#Sun Sep 13 12:26:40 UTC 2020\nbroker.id=3\nversion=0\n"
    meta_properties.claim(files, "/d/meta.properties", 3, 0)


@pytest.mark.parametrize("text", [b"broker.id=4\nversion=0\n", b"node.id=4\nversion=1\n", b"version=0\n"])
def test_the_directory_of_another_broker_is_refused(files: SimulatedFiles, text: bytes) -> None:
    write_whole(files, "/d/meta.properties", text)
    with pytest.raises(StorageFailed, match="broker"):
        meta_properties.claim(files, "/d/meta.properties", 3, 0)


def test_the_directory_of_a_kraft_broker_is_taken(files: SimulatedFiles) -> None:
    write_whole(files, "/d/meta.properties", b"#\n#Mon Jan 1\nnode.id = 3\ncluster.id=x=y\nversion=1\n")
    meta_properties.claim(files, "/d/meta.properties", 3, 0)
