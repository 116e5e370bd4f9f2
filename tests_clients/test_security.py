"""Kafka's own client at listeners where it has to show something."""

from pathlib import Path
from time import monotonic

import pytest

from kohort.admin.certificates import Issued, certify_client, certify_server, make_authority
from tests_clients.client import Refused
from tests_clients.kinds import KINDS, Kind
from tests_clients.login import Login
from tests_clients.scene import Scene

JAVA: tuple[Kind, ...] = (KINDS[0],)
PASSWORD = 'a "password" of hers'
TRUSTED, SERVER, CLIENT = "trusted.pem", "server.pem", "client.pem"
LIFETIME_MS = 3000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("certificates")
    authority = make_authority("the authority", 30)
    (there / TRUSTED).write_text(authority.certificate)
    write(there / SERVER, certify_server(authority, ["127.0.0.1"], 30))
    write(there / CLIENT, certify_client(authority, "alice", 30))
    return there


def write(path: Path, issued: Issued) -> None:
    path.write_text(issued.key + issued.certificate)


def trust(certificates: Path) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates / TRUSTED)}


def jaas(user: str, password: str) -> str:
    quoted = password.replace('"', '\\\\"')
    return f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{quoted}";'


def scram(certificates: Path, mechanism: str, user: str = "alice", password: str = PASSWORD) -> Login:
    settings = {**trust(certificates), "sasl.mechanism": mechanism, "sasl.jaas.config": jaas(user, password)}
    return Login("SASL_SSL", settings, "alice", PASSWORD)


def live_in_a_group(scene: Scene) -> None:
    """Write, read in a group of two, commit, leave."""
    scene.create_topic("orders", 4)
    members = [scene.open("billing", "orders") for _ in range(2)]
    generation = scene.settle(members, {"orders": 4})
    for partition in range(4):
        scene.produce("orders", [f"{partition}-{number}" for number in range(10)], partition)
    for member in members:
        member.values(20)
        member.commit()
    assert scene.settle(members, {"orders": 4}) == generation
    for member in members:
        member.close()
    assert sum(offset for offset, _ in scene.offsets("billing").values()) == 40


@pytest.mark.parametrize("kind", JAVA, ids=str)
class TestScramOverTls:
    @pytest.fixture(params=["SCRAM-SHA-256", "SCRAM-SHA-512"])
    def login(self, certificates: Path, request: pytest.FixtureRequest) -> Login:
        return scram(certificates, request.param)

    @pytest.fixture
    def settings(self, certificates: Path) -> dict[str, str]:
        return {"ssl.keystore.location": str(certificates / SERVER)}

    def test_who_has_the_password_lives_in_a_group(self, scene: Scene) -> None:
        live_in_a_group(scene)

    def test_who_has_not_is_refused(self, scene: Scene, certificates: Path) -> None:
        assert scene.client.call("topics") == {}
        for user in ("alice", "nobody"):
            stranger = scene.start_client(login=scram(certificates, "SCRAM-SHA-512", user, "guessed"))
            with pytest.raises(Refused, match="SaslAuthenticationException"):
                stranger.call("topics")

    def test_an_administrator_adds_others(self, scene: Scene, certificates: Path) -> None:
        call = scene.client.call
        call("add_user", name="bob", values=["his password"])
        both = {"alice": ["SCRAM-SHA-256 4096", "SCRAM-SHA-512 4096"], "bob": ["SCRAM-SHA-512 8192"]}
        assert {user: sorted(known) for user, known in call("users").items()} == both
        other = scene.start_client(login=scram(certificates, "SCRAM-SHA-512", "bob", "his password"))
        assert other.call("topics") == {}
        call("delete_user", name="bob")
        with pytest.raises(Refused, match="ResourceNotFoundException"):
            call("delete_user", name="bob")
        late = scene.start_client(login=scram(certificates, "SCRAM-SHA-512", "bob", "his password"))
        with pytest.raises(Refused, match="SaslAuthenticationException"):
            late.call("topics")


@pytest.mark.parametrize("kind", JAVA, ids=str)
class TestLoginsThatEnd:
    @pytest.fixture
    def login(self, certificates: Path) -> Login:
        return scram(certificates, "SCRAM-SHA-512")

    @pytest.fixture
    def settings(self, certificates: Path) -> dict[str, str]:
        return {"ssl.keystore.location": str(certificates / SERVER), "connections.max.reauth.ms": str(LIFETIME_MS)}

    def test_a_group_does_not_rebalance_when_its_members_log_in_again(self, scene: Scene) -> None:
        scene.create_topic("orders", 2)
        members = [scene.open("billing", "orders") for _ in range(2)]
        generation = scene.settle(members, {"orders": 2})
        began, count = monotonic(), 0
        while monotonic() - began < 4 * LIFETIME_MS / 1000:
            count += 1
            for partition in range(2):
                scene.produce("orders", [f"{count}-{partition}"], partition)
            for member in members:
                member.values(count)
                member.commit()
        assert scene.settle(members, {"orders": 2}) == generation
        assert all(len(member.history) <= 2 for member in members)


@pytest.mark.parametrize("kind", JAVA, ids=str)
class TestCertificatesOfClients:
    @pytest.fixture
    def login(self, certificates: Path) -> Login:
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates / CLIENT)}
        return Login("SSL", {**trust(certificates), **own})

    @pytest.fixture
    def settings(self, certificates: Path) -> dict[str, str]:
        return {
            "ssl.keystore.location": str(certificates / SERVER),
            "ssl.client.auth": "required",
            "ssl.truststore.location": str(certificates / TRUSTED),
        }

    def test_who_shows_one_lives_in_a_group(self, scene: Scene) -> None:
        live_in_a_group(scene)

    def test_who_shows_none_is_refused(self, scene: Scene, certificates: Path) -> None:
        assert scene.client.call("topics") == {}
        stranger = scene.start_client(login=Login("SSL", trust(certificates)))
        with pytest.raises(Refused, match=r"Ssl|SSL"):
            stranger.call("topics")
