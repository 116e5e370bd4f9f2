"""Who is who in a measurement behind TLS and SASL: made anew for each, and gone with it."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from kohort.admin.certificates import certify_server, make_authority

ADMIN, USER = "admin", "bench"
"""Who may do everything, and who may commit."""
MECHANISM = "SCRAM-SHA-512"
"""How the second logs in. The first has PLAIN: he must get in before the broker keeps anybody's password."""
PROTOCOL = "SASL_SSL"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LOGIN_MODULES = "org.apache.kafka.common.security"
_DAYS = 1


@dataclass(frozen=True, slots=True)
class Secrets:
    """Files of one directory."""

    place: Path

    @property
    def authority(self) -> Path:
        """The certificate of who vouches for the broker."""
        return self.place / "authority.pem"

    @property
    def broker(self) -> Path:
        """The broker's key and certificate, as Kafka's settings want them in one file."""
        return self.place / "broker.pem"

    def password_file(self, name: str) -> Path:
        return self.place / f"{name}.password"

    def password(self, name: str) -> str:
        return self.password_file(name).read_text()

    def login(self, name: str) -> dict[str, object]:
        """What the load client is told, so that it gets in."""
        mechanism = "PLAIN" if name == ADMIN else MECHANISM
        told = {"authority": self.authority, "user": name, "password-file": self.password_file(name)}
        return {**told, "mechanism": mechanism}

    def settings(self, *, acls: bool) -> dict[str, str]:
        """What Kafka and kohort are told alike. They keep the user's password themselves, and are asked to later."""
        of_listener, password = f"listener.name.{PROTOCOL.lower()}", self.password(ADMIN)
        own = f'username="{ADMIN}" password="{password}" user_{ADMIN}="{password}"'
        told = {
            "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
            f"{of_listener}.plain.sasl.jaas.config": f"{LOGIN_MODULES}.plain.PlainLoginModule required {own};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
        }
        return told | {"authorizer.class.name": _AUTHORIZER, "super.users": f"User:{ADMIN}"} if acls else told


def make(place: Path) -> Secrets:
    place.mkdir(parents=True, mode=0o700)
    made = Secrets(place)
    authority = make_authority("bench", _DAYS)
    broker = certify_server(authority, ["127.0.0.1"], _DAYS)
    made.authority.write_text(authority.certificate)
    made.broker.write_text(broker.key + broker.certificate)
    for name in (ADMIN, USER):
        made.password_file(name).write_text(secrets.token_hex(16))
    return made
