"""`meta.properties`: whose data directory this is, as Kafka 2.6 writes it in Java's properties format."""

import time

from kohort.errors import StorageFailed
from kohort.log.files import Files, read_whole, write_whole

NAME = "meta.properties"
_VERSION = 0


def claim(files: Files, path: str, broker_id: int, now_ms: int) -> None:
    """Write the file if there is none; a directory of another broker is refused."""
    if files.exists(path):
        check(files, path, broker_id)
        return
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(now_ms / 1000))
    write_whole(files, path, f"#\n#{date}\nbroker.id={broker_id}\nversion={_VERSION}\n".encode())


def check(files: Files, path: str, broker_id: int) -> None:
    """Refuse the directory of another broker. KRaft brokers (version 1) call the id `node.id`."""
    properties = read_properties(files, path)
    owner = properties.get("broker.id", properties.get("node.id"))
    if owner != str(broker_id):
        raise StorageFailed(f"{path} names broker {owner}, this is broker {broker_id}")


def read_properties(files: Files, path: str) -> dict[str, str]:
    lines = read_whole(files, path).decode("latin-1").splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith(("#", "!")))
    return {key.strip(): value.strip() for key, value in pairs}
