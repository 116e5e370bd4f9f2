"""Clients that keep the broker busy wait for each other, and not everybody else for them."""

import asyncio
import time

from kohort.broker.connection import Connection
from kohort.broker.turns import A_TURN_S, Turns
from kohort.errors import ErrorCode
from tests.broker.bombs import bombs
from tests.broker.data_plane import PRODUCE, make_topic, produce_request
from tests.broker.running import running
from tests.broker.wire_client import request_bytes

METADATA = 3


class Worker:
    """Takes two thirds of a turn each time, and tells of it as a connection does."""

    def __init__(self, name: str, turns: Turns, done: list[str], times: int, *, is_heavy: bool) -> None:
        self.name, self.turns, self.done, self.left, self.is_heavy = name, turns, done, times, is_heavy

    def serve(self) -> None:
        while self.left:
            if self.turns.is_over:
                self.turns.wait(self.serve, is_heavy=self.is_heavy)
                return
            self.left -= 1
            self.done.append(self.name)
            until = time.perf_counter() + A_TURN_S * 2 / 3
            while (now := time.perf_counter()) < until:
                pass
            if now > self.turns.ends:
                self.turns.mark(now)


def test_whoever_is_at_work_for_too_long_lets_others_go_on() -> None:
    async def play() -> list[str]:
        turns, done = Turns(asyncio.get_running_loop()), []
        heavy = [Worker(f"heavy-{n}", turns, done, 6, is_heavy=True) for n in range(3)]
        light = Worker("light", turns, done, 3, is_heavy=False)
        for worker in (*heavy, light):
            worker.serve()
        ticks = 0
        while any(worker.left for worker in (*heavy, light)):
            await asyncio.sleep(0)
            ticks += 1
        assert ticks > 3  # the loop came around in between
        return done

    done = asyncio.run(play())
    assert done.count("light") == 3
    assert max(index for index, name in enumerate(done) if name == "light") < 12  # of 21
    assert {name: done.count(name) for name in done} == {"heavy-0": 6, "heavy-1": 6, "heavy-2": 6, "light": 3}


def test_a_turn_that_is_over_is_followed_by_another_though_nobody_waits() -> None:
    async def play() -> None:
        turns = Turns(asyncio.get_running_loop())
        now = time.perf_counter()
        assert not turns.mark(now)
        assert turns.mark(now + 1)
        assert turns.is_over
        await asyncio.sleep(0)
        assert not turns.is_over

    asyncio.run(play())


class Line(asyncio.Transport):
    """What the broker writes into; tells in which order clients were answered."""

    def __init__(self, name: str, answered: list[str]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.name, self.answered = name, answered

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        while data:
            self.answered.append(self.name)
            data = data[4 + int.from_bytes(data[:4], "big") :]

    def pause_reading(self) -> None:
        """All is here already."""

    def resume_reading(self) -> None:
        """All is here already."""


def framed(api_key: int, version: int, **values: object) -> bytes:
    frame = request_bytes(api_key, version, 1, "turns", values)
    return len(frame).to_bytes(4, "big") + frame


def test_whoever_asks_for_little_waits_for_few_of_those_who_ask_for_much() -> None:
    """Ten clients send six bombs each, all at once; one asks for nothing much, again and again."""
    bomb = framed(PRODUCE, 8, **produce_request(bombs()["snappy in many blocks"]))
    question = framed(METADATA, 9, topics=[])
    answered: list[str] = []
    waits: list[int] = []
    with running() as broker:
        make_topic(broker)

        async def play() -> None:
            hostile = [connection(f"hostile-{number}") for number in range(10)]
            good = connection("good")
            for one in hostile:
                one.data_received(bomb * 6)
            while len(answered) - answered.count("good") < 60:
                before, asked = len(answered), answered.count("good")
                good.data_received(question)
                while answered.count("good") == asked:
                    await asyncio.sleep(0)
                waits.append(len(answered) - before)
            for one in (*hostile, good):
                one.connection_lost(None)
            assert [answered.count(f"hostile-{number}") for number in range(10)] == [6] * 10

        def connection(name: str) -> Connection:
            made = Connection(broker.server)
            made.connection_made(Line(name, answered))
            return made

        asyncio.run_coroutine_threadsafe(play(), broker.loop).result(120)
    # At first nobody knows who asks for much, so each has a turn; then two turns are what one waits.
    assert max(waits[1:]) < 20, waits
    assert len(waits) > 4, waits


def test_one_request_with_many_bombs_is_served_bit_by_bit_and_answered_as_a_whole() -> None:
    bomb = bombs()["snappy in many blocks"]
    answered: list[str] = []
    with running() as broker, broker.client() as hostile:
        make_topic(broker, partitions=20)

        async def play() -> None:
            """Somebody asks for little until the other has its answer."""
            large, good = Connection(broker.server), Connection(broker.server)
            large.connection_made(Line("large", answered))
            good.connection_made(Line("good", answered))
            large.data_received(framed(PRODUCE, 8, **produce_request(*[bomb] * 20)))
            while "large" not in answered:
                asked = len(answered)
                good.data_received(framed(METADATA, 9, topics=[]))
                while len(answered) == asked:
                    await asyncio.sleep(0)
            large.connection_lost(None)
            good.connection_lost(None)

        asyncio.run_coroutine_threadsafe(play(), broker.loop).result(120)
        assert answered.count("good") >= 3, answered
        answers = hostile.ask(PRODUCE, 8, **produce_request(*[bomb] * 20)).responses[0].partition_responses
    assert [answer.index for answer in answers] == list(range(20))
    assert {answer.error_code for answer in answers} == {ErrorCode.INVALID_RECORD}
