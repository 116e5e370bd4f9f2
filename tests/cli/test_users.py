"""`kohort users`: who can log in, in a running broker and before there is one."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.errors import ErrorCode
from tests.broker.running import Running, running
from tests.broker.security import certificates
from tests.broker.security.logins import OPEN_AND_SASL, SHA_256, SHA_512, ScramClient, at_sasl, log_in_by_scram

KOHORT = Path(sys.executable).with_name("kohort")
PASSWORD = "a pässword, with = and ,"


def users(*arguments: object, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    command = [KOHORT, "users", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


def can_log_in(broker: Running, user: str, password: str, mechanism: str) -> bool:
    with at_sasl(broker) as client:
        return log_in_by_scram(client, ScramClient(mechanism, user, password)).error_code == ErrorCode.NONE


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=OPEN_AND_SASL) as broker:
        yield broker


def test_somebody_comes_and_goes_while_the_broker_runs(broker: Running) -> None:
    where = ("--bootstrap", broker.address)
    added = users("add", "alice", *where, "--password-file", "-", stdin=f"{PASSWORD}\nand more\n")
    assert (added.returncode, added.stderr) == (0, "")
    assert added.stdout == "User alice can log in with SCRAM-SHA-256, SCRAM-SHA-512.\n"
    assert can_log_in(broker, "alice", PASSWORD, SHA_256)
    assert can_log_in(broker, "alice", PASSWORD, SHA_512)

    only = users(
        "add", "bob", *where, "--mechanism", "scram-sha-512", "--iterations", 8192, "--password-file", "-", stdin="x"
    )
    assert only.stdout == "User bob can log in with SCRAM-SHA-512.\n"
    assert users("list", *where).stdout.splitlines() == [
        "USER   MECHANISMS",
        "alice  SCRAM-SHA-256, SCRAM-SHA-512",
        "bob    SCRAM-SHA-512",
    ]
    assert json.loads(users("list", *where, "--format", "json").stdout)[1] == {
        "user": "bob",
        "mechanisms": {"SCRAM-SHA-512": 8192},
    }

    assert users("delete", "alice", *where, "--mechanism", SHA_256).returncode == 0
    assert not can_log_in(broker, "alice", PASSWORD, SHA_256)
    assert can_log_in(broker, "alice", PASSWORD, SHA_512)
    assert users("delete", "alice", *where).stdout == "User alice can log in no more.\n"
    assert not can_log_in(broker, "alice", PASSWORD, SHA_512)
    again = users("delete", "alice", *where)
    assert (again.returncode, again.stderr) == (1, "kohort: user 'alice': there is no user 'alice'\n")


def test_the_first_user_is_added_before_anybody_can_log_in(tmp_path: Path) -> None:
    data = tmp_path / "data"
    added = users("add", "admin", "--data", data, "--password-file", "-", stdin=PASSWORD)
    assert (added.returncode, added.stderr) == (0, "")
    assert users("add", "other", "--data", data, "--password-file", "-", stdin="x").returncode == 0
    assert users("delete", "other", "--data", data).returncode == 0
    assert users("list", "--data", data).stdout.splitlines() == [
        "USER   MECHANISMS",
        "admin  SCRAM-SHA-256, SCRAM-SHA-512",
    ]

    with running(data, OPEN_AND_SASL) as broker:
        assert can_log_in(broker, "admin", PASSWORD, SHA_256)
        assert can_log_in(broker, "admin", PASSWORD, SHA_512)
        assert not can_log_in(broker, "other", "x", SHA_256)
        locked = users("add", "late", "--data", data, "--password-file", "-", stdin="x")
        assert (locked.returncode, locked.stderr.count("\n")) == (1, 1)
        assert not can_log_in(broker, "late", "x", SHA_256)
    assert (data / ".kafka_cleanshutdown").exists()


def test_an_administrator_logs_in_to_add_others(tmp_path: Path) -> None:
    data = tmp_path / "data"
    users("add", "admin", "--data", data, "--password-file", "-", stdin=PASSWORD)
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "advertised.listeners": "SASL_SSL://localhost:0",
        "ssl.keystore.location": certificates.file_of(certificates.server()),
    }
    login = tmp_path / "admin.properties"
    login.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=admin\nsasl.password={PASSWORD}\n"
        f"ssl.truststore.location={certificates.authority_file()}\n"
    )
    with running(data, settings) as broker:
        where = ("--bootstrap", f"localhost:{broker.port}", "--command-config", login)
        assert users("add", "alice", *where, "--password-file", "-", stdin="x").returncode == 0
        assert [row["user"] for row in json.loads(users("list", *where, "--format", "json").stdout)] == [
            "admin",
            "alice",
        ]
        login.write_text(login.read_text().replace(PASSWORD, "another"))
        refused = users("list", *where)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "another" not in refused.stderr


def test_a_password_is_asked_for_twice_at_a_terminal(broker: Running) -> None:
    ours, theirs = pty.openpty()
    command = [KOHORT, "users", "add", "typed", "--bootstrap", broker.address]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    for question in ("Password: ", "\nRepeat for confirmation: "):
        assert process.stderr.read(len(question)) == question
        os.write(ours, b"secret\n")
    told, complaints = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, told) == (0, "User typed can log in with SCRAM-SHA-256, SCRAM-SHA-512.\n")
    assert "secret" not in complaints
    assert can_log_in(broker, "typed", "secret", SHA_256)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["add", "x"], "give either --bootstrap or --data"),
        (["add", "x", "--bootstrap", "h:1", "--data", "d"], "give either --bootstrap or --data"),
        (["add", "x", "--data", "d"], "there is nobody to be asked for the password"),
        (["add", "x", "--data", "d", "--password-file", "-"], "a password is not empty"),
        (["add", "", "--data", "d", "--password-file", "-"], "a user has a name"),
        (["add", "x", "--data", "d", "--iterations", "4095"], "4096<=x<=16384"),
        (["add", "x", "--data", "d", "--password", "hush"], "No such option"),
        (["list"], "give either --bootstrap or --data"),
    ],
)
def test_wrong_usage_ends_with_2(tmp_path: Path, arguments: list[str], reason: str) -> None:
    done = subprocess.run(
        [KOHORT, "users", *arguments], input="", capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "d").exists()


def test_a_directory_that_is_none_is_told_in_one_line(tmp_path: Path) -> None:
    done = users("list", "--data", tmp_path / "nothing")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "nothing").exists()
