"""New topics and partitions, made in a thread while everybody else is served.

Whoever asks for a topic that is just being made waits for it with the others. What a coordinator keeps its state in is
made when it is first asked for.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kohort.broker.new_partitions import NewPartitions
from kohort.broker.topics import OFFSETS_TOPIC, TRANSACTION_TOPIC, Topic
from kohort.errors import StorageFailed

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


_AT_A_TIME = 4


class TopicMaker:
    """Everything here is for the loop's thread."""

    def __init__(self, broker: "Broker", lead: Callable[[Topic], None]) -> None:
        self._broker = broker
        self._lead = lead
        self._threads = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="kohort-topics")
        self._made: dict[str, asyncio.Event] = {}
        """Set when what is under way has ended, by the names of topics."""
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """What is under way is made at the next start."""
        self._broker.topics.stop_making()
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(cancel_futures=True)

    def serve(self, call: "Call", answering: Coroutine[Any, Any, None]) -> None:
        """Answer a call that has to wait for something to be made."""
        task = self._broker.loop.create_task(answering)
        self._tasks.add(task)

        def done(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._broker.loop.call_exception_handler({"message": "a request failed", "exception": error})
                call.hang_up(f"API {call.api_key} failed")

        task.add_done_callback(done)

    async def create(self, name: str, partitions: int, settings: Mapping[str, str]) -> Topic:
        """A new topic. `TopicExists` also if there is one soon; `StorageFailed` if the disk fails."""
        return await self._make(self._broker.topics.begin_creation(name, partitions, settings))

    async def grow(self, topic: Topic, count: int) -> Topic:
        """A topic gets more partitions. `MakingStopped` if it is deleted meanwhile."""
        return await self._make(self._broker.topics.begin_growth(topic, count))

    async def wait_for(self, name: str) -> None:
        """Until nothing of this topic is under way."""
        while (made := self._made.get(name)) is not None:
            await made.wait()

    async def ensure(self, name: str) -> Topic:
        """A topic that somebody asked for, as it is or new (`auto.create.topics.enable`)."""
        await self.wait_for(name)
        topic = self._broker.topics.get(name)
        if topic is None:
            topic = await self.create(name, *self._shape(name))
        return topic

    def ensure_at_once(self, name: str) -> Topic:
        """The same while nobody else is served."""
        topics = self._broker.topics
        topic = topics.get(name)
        if topic is None:
            new = topics.under_way(name) or topics.begin_creation(name, *self._shape(name))
            topic = topics.complete(new)
            self._lead(topic)
        return topic

    def _shape(self, name: str) -> tuple[int, dict[str, str]]:
        """How many partitions, and which settings."""
        config = self._broker.config
        if name == OFFSETS_TOPIC:
            size = config.offsets_topic_segment_bytes
            return self._broker.offsets_partitions, {"cleanup.policy": "compact", "segment.bytes": str(size)}
        if name == TRANSACTION_TOPIC:
            size = config.transaction_state_log_segment_bytes
            count = self._broker.transactions.manager.config.transaction_state_log_num_partitions
            return count, {"cleanup.policy": "compact", "segment.bytes": str(size)}
        return config.num_partitions, {}

    async def _make_all(self, new: NewPartitions) -> None:
        """In several threads: a disk that is asked to sync several things syncs them together."""
        run = self._broker.loop.run_in_executor
        helpers = min(_AT_A_TIME, new.count)
        outcomes = await asyncio.gather(
            *(run(self._threads, new.help_making) for _ in range(helpers)), return_exceptions=True
        )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        new.check_made()

    async def _make(self, new: NewPartitions) -> Topic:
        name, topics = new.topic.name, self._broker.topics
        made = self._made[name] = asyncio.Event()
        try:
            await self._make_all(new)
            was_under_way = topics.under_way(name) is new
            topic = topics.finish(new)
        except StorageFailed:
            topics.give_up(new)
            raise
        finally:
            del self._made[name]
            made.set()
        if was_under_way:  # else somebody was in a hurry and has done it already
            self._lead(topic)
            self._broker.wake_timers()
        return topic
