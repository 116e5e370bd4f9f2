"""TLS on a listener: who gets in, who does not, and certificates that change while the broker runs."""

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from kohort.admin.certificates import Issued
from kohort.broker.security.tls import Tls
from kohort.broker.server import Server
from kohort.broker.setting_kinds import BadSetting
from kohort.broker.settings import BrokerConfig, with_settings
from tests.broker.running import Running, running
from tests.broker.security import certificates
from tests.broker.wire_client import Closed, WireClient

METADATA = 3
LISTENER = {"listeners": "SSL://127.0.0.1:0"}
MUTUAL = {"ssl.client.auth": "required", "ssl.truststore.location": certificates.authority_file()}

HURRY = {"connection.setup.timeout.ms": "200"}


def shown(issued: Issued | None = None) -> dict[str, str]:
    """Settings with which a broker shows a certificate."""
    return {**LISTENER, "ssl.keystore.location": certificates.file_of(issued or certificates.server())}


@contextmanager
def connected(broker: Running, context: ssl.SSLContext | None = None, name: str = "localhost") -> Iterator[WireClient]:
    with WireClient(broker.port, tls=context or certificates.trusting(), name=name) as client:
        yield client


def cluster_seen(client: WireClient) -> str:
    return client.ask(METADATA, 9, topics=[]).cluster_id


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings=shown()) as broker:
        yield broker


class TestWhoTrustsTheBroker:
    def test_a_client_that_trusts_its_authority_is_served(self, broker: Running) -> None:
        for name in certificates.HOSTS:
            with connected(broker, name=name) as client:
                assert cluster_seen(client) == "kohort"

    def test_many_are_served_at_once(self, broker: Running) -> None:
        clients = [WireClient(broker.port, tls=certificates.trusting()) for _ in range(20)]
        try:
            assert {cluster_seen(client) for client in clients} == {"kohort"}
        finally:
            for client in clients:
                client.close()

    def test_a_client_that_knows_another_authority_refuses_the_broker(self, broker: Running) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
            WireClient(broker.port, tls=certificates.trusting("others"))

    def test_a_client_that_wants_another_host_refuses_the_broker(self, broker: Running) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'broker\.example\.com'"):
            WireClient(broker.port, tls=certificates.trusting(), name="broker.example.com")

    def test_a_client_refuses_a_certificate_that_does_not_count_any_more(self) -> None:
        with (
            running(settings=shown(certificates.server(days=-1))) as broker,
            pytest.raises(ssl.SSLCertVerificationError, match="expired"),
        ):
            WireClient(broker.port, tls=certificates.trusting())

    def test_who_does_not_speak_tls_is_not_served(self, broker: Running) -> None:
        with broker.client() as client:
            client.send(METADATA, 9, topics=[])
            client.finish_sending()
            with contextlib.suppress(Closed):  # TLS' own complaint is none of ours
                assert list(client.remaining_frames()) == []

    def test_tls_is_nothing_that_another_listener_understands(self) -> None:
        with running() as plain, pytest.raises((ssl.SSLError, OSError)):
            WireClient(plain.port, tls=certificates.trusting())


@pytest.fixture(scope="module")
def asking_broker() -> Iterator[Running]:
    with running(settings={**shown(), **MUTUAL}) as broker:
        yield broker


class TestWhomTheBrokerTrusts:
    def test_who_shows_a_certificate_is_known_by_its_subject(self, asking_broker: Running) -> None:
        broker = asking_broker
        with connected(broker, certificates.trusting(shown=certificates.client("alice, of sales"))) as client:
            assert cluster_seen(client) == "kohort"
            assert broker.principals == ["User:CN=alice\\, of sales"]

    @pytest.mark.parametrize(
        "shown",
        [None, certificates.client("alice", by="others"), certificates.client("alice", days=-1)],
        ids=["no certificate", "one of another authority", "one that does not count any more"],
    )
    def test_who_shows_no_good_certificate_is_not_served(self, asking_broker: Running, shown: Issued | None) -> None:
        broker = asking_broker
        reason = "CERTIFICATE_REQUIRED|CERTIFICATE_EXPIRED|UNKNOWN_CA"
        with (
            pytest.raises(ssl.SSLError, match=reason),
            connected(broker, certificates.trusting(shown=shown)) as client,
        ):
            cluster_seen(client)  # in TLS 1.3 a client hears of it only when it asks for something
        assert broker.principals == []

    def test_a_certificate_may_be_requested_and_not_required(self) -> None:
        with running(settings={**shown(), **MUTUAL, "ssl.client.auth": "requested"}) as broker:
            with connected(broker) as client:
                assert cluster_seen(client) == "kohort"
                assert broker.principals == ["User:ANONYMOUS"]
            with connected(broker, certificates.trusting(shown=certificates.client("alice"))) as client:
                assert cluster_seen(client) == "kohort"
                assert "User:CN=alice" in broker.principals

    def test_rules_say_how_somebody_is_called(self) -> None:
        rules = {"ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1-of-kohort/U"}
        with running(settings={**shown(), **MUTUAL, **rules}) as broker:
            with connected(broker, certificates.trusting(shown=certificates.client("alice"))) as client:
                assert cluster_seen(client) == "kohort"
                assert broker.principals == ["User:ALICE-OF-KOHORT"]
            stranger = certificates.trusting(shown=certificates.client("nobody 17"))
            with pytest.raises((Closed, ssl.SSLError)), connected(broker, stranger) as client:
                cluster_seen(client)


class TestVersionsAndSuites:
    @pytest.mark.parametrize(
        ("settings", "version", "suite"),
        [
            ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2", None),
            ({"ssl.enabled.protocols": "TLSv1.3"}, "TLSv1.3", None),
            (
                {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
                "TLSv1.2",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
            ),
            (
                {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
                "TLSv1.2",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
            ),
            ({}, "TLSv1.3", None),
        ],
    )
    def test_what_is_allowed_is_what_is_spoken(self, settings: dict[str, str], version: str, suite: str | None) -> None:
        with (
            running(settings={**shown(), **settings}) as broker,
            socket.create_connection(("127.0.0.1", broker.port)) as plain,
            certificates.trusting().wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            assert secured.version() == version
            assert suite in (None, secured.cipher()[0])

    def test_an_older_version_than_1_2_is_not_spoken(self, broker: Running) -> None:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSVersion.TLSv1_1 is deprecated"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, OSError)):
            WireClient(broker.port, tls=old)


def tls_of(settings: dict[str, str]) -> Tls:
    return Tls("SSL", with_settings(BrokerConfig(), settings).listener)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"ssl.keystore.location": __file__}, "is not PEM"),
            ({"ssl.keystore.location": certificates.authority_file()}, "the broker's certificate cannot be used"),
            ({"ssl.keystore.location": "/no/such/file"}, "/no/such/file: No such file"),
            ({"ssl.client.auth": "required"}, "who vouches for clients"),
            ({"ssl.truststore.location": "/no/such/file"}, "ssl.truststore.location: /no/such/file"),
            ({"ssl.truststore.certificates": "nothing"}, "the authorities that vouch for clients cannot be used"),
            ({"ssl.cipher.suites": "TLS_NULL_WITH_NOTHING"}, "there is no such cipher suite"),
            ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "must name all suites of TLSv1.3 or none"),
            (
                {"ssl.enabled.protocols": "TLSv1.3", "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
                "leave no version of TLS",
            ),
            ({"ssl.enabled.protocols": "TLSv1.1"}, "must be TLSv1.2 or TLSv1.3"),
            ({"ssl.keystore.type": "JKS"}, "must be PEM or PKCS12"),
            ({"ssl.keystore.type": "PKCS12"}, "is not PKCS12"),
            ({"ssl.principal.mapping.rules": "RULE:("}, "is no rule"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_a_reason(self, settings: dict[str, str], reason: str) -> None:
        with pytest.raises(BadSetting) as refusal:
            tls_of({**shown(), **settings})
        assert reason in str(refusal.value)

    def test_a_listener_needs_a_certificate(self) -> None:
        with pytest.raises(BadSetting, match=r"TLS needs ssl.keystore.location"), running(settings=LISTENER):
            pass

    def test_certificates_can_stand_in_the_settings(self) -> None:
        issued = certificates.server()
        settings = {
            **LISTENER,
            "ssl.keystore.certificate.chain": issued.certificate,
            "ssl.keystore.key": issued.key,
            "ssl.client.auth": "required",
            "ssl.truststore.certificates": certificates.authority().certificate,
        }
        alice = certificates.trusting(shown=certificates.client("alice"))
        with running(settings=settings) as broker, connected(broker, alice) as client:
            assert cluster_seen(client) == "kohort"

    @pytest.mark.parametrize("password", ["a password", None])
    def test_a_key_may_have_a_password(self, tmp_path: Path, password: str | None) -> None:
        issued = certificates.server()
        key = load_pem_private_key(issued.key.encode(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password")
        )
        (tmp_path / "server.pem").write_text(key.decode() + issued.certificate)
        settings = {**LISTENER, "ssl.keystore.location": str(tmp_path / "server.pem")}
        if password is None:  # nobody is asked for one
            with pytest.raises(BadSetting, match="cannot be used"):
                tls_of(settings)
            return
        with running(settings={**settings, "ssl.key.password": password}) as broker, connected(broker) as client:
            assert cluster_seen(client) == "kohort"

    def test_keys_and_authorities_may_be_in_pkcs12(self, tmp_path: Path) -> None:
        issued, authority = (
            certificates.server(),
            load_pem_x509_certificate(certificates.authority().certificate.encode()),
        )
        key = load_pem_private_key(issued.key.encode(), None)
        encryption = BestAvailableEncryption(b"a password")
        certificate = load_pem_x509_certificate(issued.certificate.encode())
        (tmp_path / "own.p12").write_bytes(
            serialize_key_and_certificates(b"own", key, certificate, [authority], encryption)
        )
        (tmp_path / "trusted.p12").write_bytes(
            serialize_key_and_certificates(None, None, None, [authority], encryption)
        )
        settings = {
            **LISTENER,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(tmp_path / "own.p12"),
            "ssl.keystore.password": "a password",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(tmp_path / "trusted.p12"),
            "ssl.truststore.password": "a password",
            "ssl.client.auth": "required",
        }
        alice = certificates.trusting(shown=certificates.client("alice"))
        with running(settings=settings) as broker, connected(broker, alice) as client:
            assert cluster_seen(client) == "kohort"
        with pytest.raises(BadSetting, match="not with this password"):
            tls_of({**settings, "ssl.keystore.password": "another"})


class TestNewCertificates:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Path:
        path = tmp_path / "server.pem"
        path.write_text(certificates.pem(certificates.server()))
        return path

    def settings(self, own: Path) -> dict[str, str]:
        return {**LISTENER, "ssl.keystore.location": str(own)}

    def test_a_new_certificate_counts_for_new_connections_and_old_ones_stay(self, own: Path) -> None:
        with running(settings=self.settings(own)) as broker, connected(broker) as old:
            own.write_text(certificates.pem(certificates.server(by="others")))
            broker.on_loop(broker.server.refresh)
            with connected(broker, certificates.trusting("others")) as new:
                assert (cluster_seen(new), cluster_seen(old)) == ("kohort", "kohort")
            with pytest.raises(ssl.SSLCertVerificationError):
                WireClient(broker.port, tls=certificates.trusting())

    def test_a_change_is_noticed_without_a_word(self, own: Path) -> None:
        with running(settings=self.settings(own), prepare=look_often) as broker:
            other = own.with_suffix(".new")
            other.write_text(certificates.pem(certificates.server(by="others")))
            other.replace(own)

            def is_noticed() -> bool:
                try:
                    with connected(broker, certificates.trusting("others")) as client:
                        return cluster_seen(client) == "kohort"
                except ssl.SSLCertVerificationError:
                    return False

            wait_for(is_noticed)

    def test_authorities_change_too_and_one_that_is_gone_is_not_trusted(self, own: Path, tmp_path: Path) -> None:
        trusted = tmp_path / "trusted.pem"
        trusted.write_text(certificates.authority().certificate)
        settings = {**self.settings(own), "ssl.client.auth": "required", "ssl.truststore.location": str(trusted)}
        ours, theirs = (certificates.client("alice", by=name) for name in ("ours", "others"))
        with running(settings=settings) as broker, connected(broker, certificates.trusting(shown=ours)) as old:
            assert cluster_seen(old) == "kohort"
            trusted.write_text(certificates.authority("others").certificate)
            broker.on_loop(broker.server.refresh)
            with connected(broker, certificates.trusting(shown=theirs)) as client:
                assert cluster_seen(client) == "kohort"
            context = certificates.trusting(shown=ours)
            with pytest.raises((Closed, ssl.SSLError)), connected(broker, context) as client:
                cluster_seen(client)
            assert cluster_seen(old) == "kohort"

    def test_broken_files_change_nothing_and_are_told_once(self, own: Path, caplog: pytest.LogCaptureFixture) -> None:
        with running(settings=self.settings(own)) as broker:
            own.write_text(certificates.pem(certificates.server())[:200])
            entrance = broker.server.entrances[0]
            with caplog.at_level(logging.ERROR):
                for _ in range(3):
                    broker.on_loop(entrance.refresh)
            (record,) = caplog.records
            assert "listener SSL keeps its certificates" in record.getMessage()
            own.unlink()
            broker.on_loop(entrance.refresh)
            with connected(broker) as client:
                assert cluster_seen(client) == "kohort"
            own.write_text(certificates.pem(certificates.server(by="others")))
            broker.on_loop(entrance.refresh)
            with connected(broker, certificates.trusting("others")) as client:
                assert cluster_seen(client) == "kohort"


class TestPatience:
    def test_who_never_begins_is_let_go_of_and_holds_up_nobody(self) -> None:
        with running(settings=shown() | HURRY) as broker:
            silent = [socket.create_connection(("127.0.0.1", broker.port), timeout=30) for _ in range(10)]
            with connected(broker) as client:
                assert cluster_seen(client) == "kohort"
            for one in silent:
                assert one.recv(1) == b""
                one.close()

    def test_who_stops_half_way_is_let_go_of(self) -> None:
        with (
            running(settings=shown() | HURRY) as broker,
            socket.create_connection(("127.0.0.1", broker.port), timeout=30) as one,
        ):
            one.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a greeting
            assert one.recv(1) == b""

    def test_a_broker_ends_while_somebody_is_half_way_in(self) -> None:
        with running(settings=shown()) as broker:
            one = socket.create_connection(("127.0.0.1", broker.port), timeout=30)
            with connected(broker) as client:
                assert cluster_seen(client) == "kohort"
        with one:
            assert one.recv(1) == b""


def look_often(server: Server) -> None:
    server.look_s = 0.05


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it was never so")
