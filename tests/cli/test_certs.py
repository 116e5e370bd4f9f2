"""`kohort certs`: an authority, and what it vouches for."""

import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.running import running
from tests.broker.wire_client import WireClient

KOHORT = Path(sys.executable).with_name("kohort")
METADATA = 3


def certs(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([KOHORT, "certs", *map(str, arguments)], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("work") / "certs"
    for arguments in (
        ["ca", "--out", there],
        ["server", "--ca", there, "--host", "localhost", "--host", "127.0.0.1", "--host", "::1"],
        ["client", "--ca", there, "--name", "alice"],
    ):
        done = certs(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
    return there


def test_what_it_makes_lets_a_client_and_a_broker_know_each_other(made: Path) -> None:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(made / "server.pem"),
        "ssl.truststore.location": str(made / "ca.crt"),
        "ssl.client.auth": "required",
    }
    context = ssl.create_default_context(cafile=made / "ca.crt")
    context.load_cert_chain(made / "alice.pem")
    with running(settings=settings) as broker:
        for name in ("localhost", "127.0.0.1", "::1"):
            with WireClient(broker.port, tls=context, name=name) as client:
                assert client.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
                assert broker.principals == ["User:CN=alice"]


def test_keys_are_for_their_owner_alone(made: Path) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in made.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "server.pem": 0o600, "alice.pem": 0o600}
    assert made.stat().st_mode & 0o777 == 0o700


def test_nothing_is_overwritten(made: Path) -> None:
    before = (made / "ca.key").read_text()
    for again in (["ca", "--out", made], ["client", "--ca", made, "--name", "alice"]):
        done = certs(*again)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "is there already" in done.stderr
    assert (made / "ca.key").read_text() == before


def test_it_says_what_to_write_into_settings(made: Path, tmp_path: Path) -> None:
    told = certs("client", "--ca", made, "--name", "bob", "--out", tmp_path / "bob.pem").stdout
    settings = re.findall(r"^([a-z.]+)=(.+)$", told, re.MULTILINE)
    assert ("ssl.keystore.location", str(tmp_path / "bob.pem")) in settings
    assert ("ssl.ca.location", str(made / "ca.crt")) in settings
    assert all(Path(value).exists() for name, value in settings if name.endswith(".location"))
    assert "PRIVATE" not in told


@pytest.mark.parametrize("name", ["../x", ".hidden", "a/b", "a b"])
def test_a_name_is_no_path(made: Path, name: str) -> None:
    done = certs("client", "--ca", made, "--name", name)
    assert done.returncode == 2
    assert "is no name for a file" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["client", "--name", "x" * 65, "--out", "x.pem"], ["server", "--host", "ä b", "--out", "x.pem"]],
)
def test_what_cannot_be_certified_is_told_in_one_line(made: Path, tmp_path: Path, arguments: list[str]) -> None:
    arguments[-1] = str(tmp_path / "x.pem")
    done = certs(*arguments, "--ca", made)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "x.pem").exists()


def test_a_directory_without_an_authority_is_told_in_one_line(tmp_path: Path) -> None:
    done = certs("client", "--ca", tmp_path, "--name", "alice")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    (tmp_path / "ca.crt").write_text("no certificate")
    (tmp_path / "ca.key").write_text("no key")
    done = certs("client", "--ca", tmp_path, "--name", "alice")
    assert (done.returncode, done.stderr) == (1, "kohort: the authority is not one that kohort certs has made\n")
