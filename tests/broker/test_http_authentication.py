"""Off the machine's own address the HTTP port answers the broker's users, and nobody else."""

import base64
import hashlib
import hmac
import os
import sys
import threading
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from kohort.broker.http.port import NotSafe
from kohort.errors import ErrorCode
from tests.broker.http_port import Http, http_of
from tests.broker.running import Running, running
from tests.broker.test_http import ROUTES, check_headers

ANYWHERE = "0.0.0.0"
OPEN = {"http.allow.anonymous": "true"}


def fact(password: str, name: str, *, iterations: int = 4096) -> dict[str, object]:
    """What SCRAM keeps of a password (RFC 5802), made here from the standard alone."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    server = hmac.digest(salted, b"Server Key", name)
    told = {"salt": salt, "stored_key": stored, "server_key": server}
    return {"iterations": iterations, **{key: base64.b64encode(value).decode() for key, value in told.items()}}


def add_user(broker: Running, user: str, password: str | None, mechanism: str = "SCRAM-SHA-256") -> None:
    """Returns when it counts; no password: the user goes."""
    name = "sha256" if mechanism == "SCRAM-SHA-256" else "sha512"
    known = None if password is None else fact(password, name)
    told: list[ErrorCode] = []
    broker.on_loop(lambda: broker.broker.security_log.change({("scram", user, mechanism): known}, told.append))
    while not told:
        broker.on_loop(lambda: None)
    assert told == [ErrorCode.NONE]


def as_user(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def status(http: Http, user: str, password: str) -> int:
    return http.get("/healthz", headers=as_user(user, password)).status


def test_where_nobody_can_log_in_it_is_not_opened_for_all_the_world() -> None:
    with running() as broker, pytest.raises(NotSafe, match=r"http\.allow\.anonymous"), http_of(broker, ANYWHERE):
        pass


def test_who_wants_it_open_can_have_it() -> None:
    with running(settings=OPEN) as broker, http_of(broker, ANYWHERE) as http:
        assert http.get("/healthz").status == 200


@pytest.mark.parametrize("path", ROUTES)
def test_no_route_is_open_to_strangers(path: str) -> None:
    with running() as broker:
        add_user(broker, "alice", "secret")
        with http_of(broker, ANYWHERE) as http:
            refused = http.get(path)
            assert (refused.status, refused.json) == (401, {"error": "say who you are"})
            assert refused.headers["WWW-Authenticate"] == 'Basic realm="kohort", charset="UTF-8"'
            check_headers(refused.headers)
            assert http.get(path, headers=as_user("alice", "secret")).status in (200, 404)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_of_the_broker_gets_in_with_his_password_and_no_other(mechanism: str) -> None:
    with running() as broker:
        add_user(broker, "alice", "pässword: with colons", mechanism)
        with http_of(broker, ANYWHERE) as http:
            for _ in range(2):
                assert status(http, "alice", "pässword: with colons") == 200
                assert status(http, "alice", "pässword") == 401
                assert status(http, "alice", "") == 401
                assert status(http, "bob", "pässword: with colons") == 401


def test_a_changed_password_counts_at_once() -> None:
    with running() as broker:
        add_user(broker, "alice", "old")
        with http_of(broker, ANYWHERE) as http:
            assert status(http, "alice", "old") == 200
            add_user(broker, "alice", "new")
            assert (status(http, "alice", "old"), status(http, "alice", "new")) == (401, 200)
            add_user(broker, "alice", None)
            assert status(http, "alice", "new") == 401


@pytest.mark.parametrize(
    "header",
    ["", "Basic", "Basic !", "Basic YWxpY2U=", "Bearer YWxpY2U6c2VjcmV0", "Basic /////w==", "Basic " + "YWE6" * 2_000],
)
def test_a_header_that_says_nothing_lets_nobody_in(header: str) -> None:
    with running() as broker:
        add_user(broker, "alice", "secret")
        with http_of(broker, ANYWHERE) as http:
            assert http.get("/metrics", headers={"Authorization": header}).status in (400, 401)


def test_what_was_right_is_found_again_without_work_and_what_was_wrong_is_not_kept() -> None:
    with running() as broker:
        add_user(broker, "alice", "secret")
        with http_of(broker, ANYWHERE) as http:
            assert status(http, "alice", "secret") == 200
            began = time.perf_counter()
            for _ in range(50):
                assert status(http, "alice", "secret") == 200
            assert time.perf_counter() - began < 50 * 0.1  # no wait, no hashing


def test_groups_are_served_while_passwords_are_checked_and_too_many_are_sent_away() -> None:
    with running() as broker:
        known = fact("secret", "sha256", iterations=200_000)
        told: list[ErrorCode] = []
        change = {("scram", "alice", "SCRAM-SHA-256"): known}
        broker.on_loop(lambda: broker.broker.security_log.change(change, told.append))
        with http_of(broker, ANYWHERE) as http, broker.client() as client:
            found: list[int] = []
            threads = [
                threading.Thread(target=lambda number=number: found.append(status(http, "alice", f"wrong {number}")))
                for number in range(120)
            ]
            for thread in threads:
                thread.start()
            slowest = 0.0
            while any(thread.is_alive() for thread in threads):
                began = time.perf_counter()
                assert client.ask(3, 9, topics=[]).cluster_id == "kohort"
                slowest = max(slowest, time.perf_counter() - began)
            assert set(found) == {401, 503}
            assert status(http, "alice", "secret") == 200
            assert slowest < 2.0


def test_a_digest_tells_users_passwords_and_credentials_apart() -> None:
    with running() as broker:
        add_user(broker, "a", "bc")
        add_user(broker, "ab", "c")
        with http_of(broker, ANYWHERE) as http:
            assert (status(http, "a", "bc"), status(http, "ab", "c")) == (200, 200)
            assert (status(http, "a", "c"), status(http, "ab", "bc")) == (401, 401)


def test_the_command_says_in_one_line_why_it_does_not_start(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "kohort.cli.main",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path / "d"),
    ]
    with Popen([*command, "--http", f"{ANYWHERE}:0"], stdout=PIPE, stderr=PIPE, text=True) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err == (
        "kohort: the HTTP port on 0.0.0.0 would tell everything to everybody: add a user, listen on 127.0.0.1, or say "
        "http.allow.anonymous=true\n"
    )
