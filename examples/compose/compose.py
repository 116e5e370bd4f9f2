"""A broker, a producer and three consumers, each a process of its own, until Ctrl-C.

python compose.py [--port 9092] [--http-port 9644]
"""

import argparse
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, Producer

TOPIC, GROUP, CONSUMERS = "orders", "kitchen", 3


def produce(servers: str) -> None:
    """Twenty orders a second."""
    producer = Producer({"bootstrap.servers": servers, "client.id": "till"})
    try:
        for number in count():
            producer.produce(TOPIC, f"order {number}".encode(), key=str(number % 50).encode())
            producer.poll(0)
            time.sleep(0.05)
    finally:
        producer.flush(10)


def consume(servers: str, name: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": GROUP, "client.id": name, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    try:
        while True:
            consumer.poll(1.0)
    finally:
        consumer.close()  # leaves the group and commits


@contextmanager
def running(*command: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that Ctrl-C at the terminal does not reach: it is stopped when its turn comes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def run(port: int, http_port: int) -> None:
    kohort = str(Path(sys.executable).with_name("kohort"))
    addresses = ("--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http_port}")
    with ExitStack() as stack:  # the broker stops last, so that the consumers can say goodbye
        broker = stack.enter_context(running(kohort, "serve", "--memory", *addresses, "--set", "num.partitions=6"))
        assert broker.stdout is not None
        ready = re.match(r"kohort ready kafka=(\S+) http=(\S+)", broker.stdout.readline())
        if ready is None:
            sys.exit("the broker did not start")
        servers, http = ready.groups()
        stack.enter_context(running(sys.executable, __file__, "produce", servers))
        for number in range(1, CONSUMERS + 1):
            stack.enter_context(running(sys.executable, __file__, "consume", servers, f"cook-{number}"))
        told = f"look at http://{http}/ or type: kohort groups describe --bootstrap {servers} --group {GROUP}\n"
        sys.stdout.write(told)
        sys.stdout.flush()
        broker.wait()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if len(sys.argv) > 1 and sys.argv[1] in ("produce", "consume"):
        {"produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description="A broker, a producer and three consumers, until Ctrl-C.")
    parser.add_argument("--port", type=int, default=9092, help="0: any that is free")
    parser.add_argument("--http-port", type=int, default=9644, help="0: any that is free")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        run(given.port, given.http_port)


if __name__ == "__main__":
    main()
