"""Having every conversation with one broker."""

import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.broker.wire_client import Closed, WireClient

from oracle.apis import Api
from oracle.plain import flat
from oracle.sequences import Sequence
from oracle.sequences.before_the_topic import BEFORE_THE_TOPIC
from oracle.talk import TOPIC, TOPIC_PARTITIONS, Talk
from oracle.written import of_conversation, read_log

Fields = dict[str, Any]
"""Every field of a conversation, by step and place."""

_PATIENCE_S = 60.0
_TOO_FEW_BROKERS = 38


def have_all(port: int, sequences: Mapping[str, Sequence]) -> dict[str, Fields]:
    """The fields of every conversation, by its name."""
    make_topic(port)
    early = {name: run for name, run in sequences.items() if name in BEFORE_THE_TOPIC}
    told = {name: _have(port, name, run, log_from=None) for name, run in early.items()}
    have_coordinators(port)
    with WireClient(port) as reader:
        for name, run in sequences.items():
            if name not in early:
                batches = read_log(reader, 0, 0)
                told[name] = _have(port, name, run, log_from=batches[-1].header.next_offset if batches else 0)
    return told


def _have(port: int, name: str, run: Sequence, *, log_from: int | None) -> Fields:
    with Talk(port, name) as talk:
        try:
            run(talk)
        except (Closed, OSError, AttributeError, LookupError, ValueError) as error:
            # An answer that is not as the script needs it: what was said so far tells where the two part.
            talk.note("the conversation broke off", f"{type(error).__name__}: {error}")
        if log_from is not None:
            with WireClient(port) as reader:
                _fence(reader)
                batches = read_log(reader, 0, log_from)
            for batch in of_conversation(batches, name, talk.names):
                talk.note("written", batch)
    return {f"{step}{path}": value for step, answer in talk.steps for path, value in flat(answer).items()}


def _fence(client: WireClient) -> None:
    """A commit that was answered stands in the log, and so does everything before it."""
    partition = {"partition_index": 0, "committed_offset": 0}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    values = {"group_id": "fence", "generation_id_or_member_epoch": -1, "retention_time": -1}
    client.ask(Api.OFFSET_COMMIT, 3, topics=topics, **values)


def make_topic(port: int) -> None:
    """The topic that everybody reads."""
    topic = {"name": TOPIC, "num_partitions": TOPIC_PARTITIONS, "replication_factor": 1}
    deadline = time.monotonic() + _PATIENCE_S
    with WireClient(port) as client:
        while (made := client.ask(Api.CREATE_TOPICS, 4, topics=[topic], timeout=30_000).topics[0]).error_code.value:
            # A Kafka that has only just started does not know of itself yet.
            if made.error_code.value != _TOO_FEW_BROKERS or time.monotonic() > deadline:
                raise RuntimeError(f"CreateTopics: {made}")
            time.sleep(0.1)


def have_coordinators(port: int) -> None:
    """Kafka makes its own topics while clients ask again."""
    deadline = time.monotonic() + _PATIENCE_S
    with WireClient(port) as client:
        for kind in (0, 1):
            while client.ask(Api.FIND_COORDINATOR, 2, key="any", key_type=kind).error_code.value:
                if time.monotonic() > deadline:
                    raise TimeoutError("no coordinator")
                time.sleep(0.1)
        # Found is not loaded yet.
        while client.ask(Api.DESCRIBE_GROUPS, 0, groups=("any",)).groups[0].error_code.value:
            time.sleep(0.1)
        while client.ask(Api.INIT_PRODUCER_ID, 1, transactional_id="any", transaction_timeout=1000).error_code.value:
            time.sleep(0.1)


def progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
