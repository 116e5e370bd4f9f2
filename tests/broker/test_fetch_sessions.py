"""Incremental fetch sessions (KIP-227): the book of them alone, and over the wire."""

import pytest

from kohort.broker.fetch_sessions import EVICTION_MS, FetchSessions, Found, Wanted, next_epoch
from kohort.clock import VirtualClock
from kohort.errors import ErrorCode
from kohort.log.names import TopicPartition
from tests.broker.data_plane import FETCH, TOPIC, batch, fetch_request, make_topic, produce, produce_all, values
from tests.broker.running import running

WANTED = Wanted(0, 1 << 20)


def partitions(count: int) -> dict[TopicPartition, Wanted]:
    return {TopicPartition(TOPIC, index): WANTED for index in range(count)}


def start(sessions: FetchSessions, count: int) -> int:
    """A full fetch of so many partitions; the session that came of it."""
    context = sessions.open(0, 0, partitions(count))
    return context.answer({partition: Found(high_watermark=0) for partition in context.wanted}).session_id


def go_on(sessions: FetchSessions, session_id: int, epoch: int) -> ErrorCode:
    context = sessions.open(session_id, epoch, {})
    return context.answer({partition: Found(high_watermark=0) for partition in context.wanted}).error


def test_a_fetch_with_epoch_0_makes_a_session_and_the_next_names_nothing() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        produce_all(client, batch("a"), batch("b"))
        full = client.ask(FETCH, 11, **fetch_request(0, 0, session_id=0, session_epoch=0))
        assert full.session_id > 0
        assert [values(found.records) for found in full.responses[0].partitions] == [["a"], ["b"]]
        moved = client.ask(FETCH, 11, **fetch_request(1, session_id=full.session_id, session_epoch=1))
        assert [found.partition_index for found in moved.responses[0].partitions] == [1]
        produce(client, batch("c"))
        more = client.ask(FETCH, 11, **fetch_request(session_id=full.session_id, session_epoch=2))
        told = {found.partition_index: values(found.records) for found in more.responses[0].partitions}
        assert told == {0: ["c"], 1: ["b"]}


def test_nothing_new_is_an_empty_answer_within_the_session() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        full = client.ask(FETCH, 11, **fetch_request(0, session_id=0, session_epoch=0))
        nothing = client.ask(FETCH, 11, **fetch_request(session_id=full.session_id, session_epoch=1))
        assert (nothing.error_code, nothing.session_id, nothing.responses) == (0, full.session_id, ())


def test_an_unknown_session_and_a_wrong_epoch_are_told_at_once() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        lost = client.ask(FETCH, 11, **fetch_request(session_id=4711, session_epoch=1, max_wait=60_000))
        assert (lost.error_code, lost.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
        full = client.ask(FETCH, 11, **fetch_request(0, session_id=0, session_epoch=0))
        wrong = client.ask(FETCH, 11, **fetch_request(session_id=full.session_id, session_epoch=5, max_wait=60_000))
        assert (wrong.error_code, wrong.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


def test_epoch_minus_1_ends_a_session() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker)
        full = client.ask(FETCH, 11, **fetch_request(0, session_id=0, session_epoch=0))
        end = client.ask(FETCH, 11, **fetch_request(0, session_id=full.session_id, session_epoch=-1))
        assert (end.error_code, end.session_id) == (ErrorCode.NONE, 0)
        late = client.ask(FETCH, 11, **fetch_request(session_id=full.session_id, session_epoch=1))
        assert late.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_forgotten_partition_is_not_read_any_more() -> None:
    with running() as broker, broker.client() as client:
        make_topic(broker, partitions=2)
        full = client.ask(FETCH, 11, **fetch_request(0, 0, session_id=0, session_epoch=0))
        produce_all(client, batch("a"), batch("b"))
        forgotten = [{"topic": TOPIC, "partitions": [0]}]
        request = fetch_request(session_id=full.session_id, session_epoch=1, forgotten_topics_data=forgotten)
        rest = client.ask(FETCH, 11, **request)
        assert [found.partition_index for found in rest.responses[0].partitions] == [1]


def test_a_session_without_partitions_ends() -> None:
    sessions = FetchSessions(10, VirtualClock())
    session_id = start(sessions, 1)
    assert sessions.open(session_id, 1, {}, partitions(1)).wanted == {}
    assert len(sessions) == 0


def test_of_two_fetches_at_once_in_a_session_the_first_is_refused() -> None:
    sessions = FetchSessions(10, VirtualClock())
    session_id = start(sessions, 1)
    first = sessions.open(session_id, 1, {})
    second = sessions.open(session_id, 2, {})
    assert first.answer({}) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id, {})
    assert second.answer({}) == (ErrorCode.NONE, session_id, {})


def test_an_error_is_told_every_time_and_its_end_too() -> None:
    sessions = FetchSessions(10, VirtualClock())
    session_id = start(sessions, 1)
    (partition,) = partitions(1)
    bad, good = Found(ErrorCode.OFFSET_OUT_OF_RANGE), Found(high_watermark=0)
    for epoch, found in enumerate([bad, bad, good], start=1):
        assert sessions.open(session_id, epoch, {}).answer({partition: found}).found == {partition: found}
    assert sessions.open(session_id, 4, {}).answer({partition: good}).found == {}


@pytest.mark.parametrize(
    "news",
    [Found(high_watermark=1), Found(high_watermark=0, log_start_offset=0), Found(high_watermark=0, records=b"r")],
)
def test_a_partition_of_which_something_is_told_goes_to_the_end(news: Found) -> None:
    sessions = FetchSessions(10, VirtualClock())
    session_id = start(sessions, 3)
    first, second, third = partitions(3)
    context = sessions.open(session_id, 1, {})
    told = context.answer({first: news, second: Found(high_watermark=0), third: Found(high_watermark=0)}).found
    assert list(told) == [first]
    assert list(sessions.open(session_id, 2, {}).wanted) == [second, third, first]


def test_epochs_begin_again_at_1() -> None:
    assert [next_epoch(0), next_epoch(1), next_epoch((1 << 31) - 1)] == [1, 2, 1]


def test_a_full_book_takes_no_more_sessions() -> None:
    sessions = FetchSessions(2, VirtualClock())
    assert start(sessions, 1)
    assert start(sessions, 1)
    assert start(sessions, 5) == 0
    assert len(sessions) == 2


def test_there_are_no_sessions_without_slots() -> None:
    with running(settings={"max.incremental.fetch.session.cache.slots": "0"}) as broker, broker.client() as client:
        make_topic(broker)
        produce(client, batch("a"))
        full = client.ask(FETCH, 11, **fetch_request(0, session_id=0, session_epoch=0))
        assert (full.error_code, full.session_id) == (ErrorCode.NONE, 0)
        assert values(full.responses[0].partitions[0].records) == ["a"]


def test_a_session_that_was_not_used_for_long_makes_room() -> None:
    clock = VirtualClock()
    sessions = FetchSessions(2, clock)
    unused, used = start(sessions, 5), start(sessions, 1)
    clock.advance(EVICTION_MS)
    assert go_on(sessions, used, 1) is ErrorCode.NONE
    assert start(sessions, 1) == 0
    clock.advance(1)
    assert start(sessions, 1)
    assert go_on(sessions, unused, 1) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(sessions, used, 2) is ErrorCode.NONE


def test_a_larger_session_takes_the_place_of_the_smallest_old_one() -> None:
    clock = VirtualClock()
    sessions = FetchSessions(2, clock)
    small, large = start(sessions, 2), start(sessions, 3)
    clock.advance(EVICTION_MS + 1)
    assert go_on(sessions, small, 1) is ErrorCode.NONE
    assert go_on(sessions, large, 1) is ErrorCode.NONE
    assert start(sessions, 2) == 0
    newest = start(sessions, 4)
    assert newest
    assert go_on(sessions, small, 2) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(sessions, large, 2) is ErrorCode.NONE
    assert start(sessions, 4)
    assert go_on(sessions, large, 3) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert start(sessions, 9) == 0
