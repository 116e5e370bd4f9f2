"""A broker of a test with listeners of its own."""

from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from kohort.testing import Broker
from kohort.testing.own_process import OwnProcess
from kohort.testing.ports import Ports
from tests.broker.security import certificates
from tests.broker.security.logins import plain, say
from tests.broker.wire_client import WireClient

METADATA = 3
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
    "ssl.keystore.location": certificates.file_of(certificates.server()),
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": 'user_alice="her password";\n',
}


def port_of(broker: Broker, listener: str) -> int:
    return int(broker.listeners[listener].rpartition(":")[2])


@pytest.mark.parametrize("subprocess", [False, True])
def test_clients_log_in_and_listeners_stay_where_they_are(tmp_path: Path, subprocess: bool) -> None:
    with Broker(tmp_path / "data", settings=SETTINGS, subprocess=subprocess) as broker:
        assert broker.listeners["PLAINTEXT"] == broker.bootstrap_servers
        before = broker.listeners
        for _ in range(2):
            with WireClient(port_of(broker, "SASL_SSL"), tls=certificates.trusting()) as client:
                assert say(client, "PLAIN", plain("alice", "her password")).error_code == ErrorCode.NONE
                (node,) = client.ask(METADATA, 9, topics=[]).brokers
                assert node.port == port_of(broker, "SASL_SSL")
            broker.restart()
            assert broker.listeners == before


@pytest.mark.parametrize("subprocess", [False, True])
def test_one_without_any_says_has_one(subprocess: bool) -> None:
    with Broker(subprocess=subprocess) as broker:
        assert broker.listeners == {"PLAINTEXT": broker.bootstrap_servers}


def test_no_secret_is_an_argument_of_its_process(tmp_path: Path) -> None:
    process = OwnProcess(str(tmp_path / "data"), "127.0.0.1", Ports(), {**SETTINGS})
    process.start()
    try:
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert b"listeners=PLAINTEXT" in command
        assert b"her password" not in command
    finally:
        process.finish(cleanly=True)
