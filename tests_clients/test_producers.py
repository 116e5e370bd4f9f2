"""Idempotent and transactional producers."""

import signal
import threading

import pytest

from tests_clients.client import Refused
from tests_clients.kinds import with_clients
from tests_clients.scene import Scene


@with_clients()
def test_idempotent_producers_write_each_record_once_while_the_broker_restarts(scene: Scene) -> None:
    scene.create_topic("orders")
    values: list[str] = []
    is_over = threading.Event()
    refused: list[Refused] = []

    def send() -> None:
        try:
            while not is_over.is_set():
                more = [str(number) for number in range(len(values), len(values) + 20)]
                scene.produce("orders", more)
                values.extend(more)
        except Refused as error:
            refused.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        count = len(values)
        scene.until(lambda count=count: len(values) > count or bool(refused))
        scene.broker.restart(how)
    is_over.set()
    sender.join()
    assert not refused
    assert scene.read_all("orders") == values


@with_clients()
def test_compressed_records_are_what_they_were(scene: Scene) -> None:
    scene.create_topic("orders")
    values = [f"a record like any other, but number {number}" for number in range(500)]
    for codec in scene.kind.codecs:
        scene.client.call("open_producer", name=codec, compression=codec)
        scene.client.call("send", name=codec, topic="orders", partition=0, values=values)
    assert scene.read_all("orders") == values * len(scene.kind.codecs)
    scene.broker.restart(signal.SIGKILL)
    assert scene.read_all("orders") == values * len(scene.kind.codecs)


@with_clients()
def test_only_what_was_committed_is_read(scene: Scene) -> None:
    call = scene.client.call
    scene.create_topic("orders")
    call("open_producer", name="p", transactional_id="t")
    for outcome in ("kept", "dropped", "kept too"):
        call("begin", name="p")
        call("send", name="p", topic="orders", partition=0, values=[f"{outcome} {n}" for n in range(3)])
        call("end", name="p", commit=outcome != "dropped")
    kept = [f"{outcome} {n}" for outcome in ("kept", "kept too") for n in range(3)]
    assert scene.read_all("orders") == kept
    assert len(scene.read_all("orders", isolation="read_uncommitted")) == 9


@with_clients()
def test_an_open_transaction_holds_careful_readers_back(scene: Scene) -> None:
    call = scene.client.call
    scene.create_topic("orders")
    careful, careless = scene.open("g", "orders"), scene.open("h", "orders", isolation="read_uncommitted")
    call("open_producer", name="p", transactional_id="t")
    call("begin", name="p")
    call("send", name="p", topic="orders", partition=0, values=["soon"])
    scene.produce("orders", ["behind it"])
    assert careless.values(2) == ["soon", "behind it"]
    assert careful.seen == []
    call("end", name="p", commit=True)
    assert careful.values(2) == ["soon", "behind it"]


@with_clients()
def test_a_newer_producer_fences_the_older(scene: Scene) -> None:
    call = scene.client.call
    scene.create_topic("orders")
    call("open_producer", name="old", transactional_id="t")
    call("begin", name="old")
    call("send", name="old", topic="orders", partition=0, values=["of the old one"])
    call("open_producer", name="new", transactional_id="t")
    call("begin", name="new")
    with pytest.raises(Refused):
        call("end", name="old", commit=True)
    call("send", name="new", topic="orders", partition=0, values=["of the new one"])
    call("end", name="new", commit=True)
    assert scene.read_all("orders") == ["of the new one"]
