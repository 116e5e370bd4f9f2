"""Apache Kafka 4.x with a door for everybody and one that takes a certificate and a password."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import kafka, servers

USER, PASSWORD = "reader", "correct horse battery staple"


@dataclass(frozen=True)
class Secured:
    """A running broker: its open address, the one with SASL over TLS, and the authority for that."""

    plain: str
    secured: str
    authority: Path


def make_certificate(work: Path) -> tuple[Path, Path]:
    """A key with a certificate for this machine, and the certificate alone."""
    key, certificate, both = work / "key.pem", work / "certificate.pem", work / "store.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return both, certificate


@contextlib.contextmanager
def secured_kafka(work: Path) -> Iterator[Secured]:
    work.mkdir(parents=True)
    store, authority = make_certificate(work)
    port, secured, controller = servers.free_port(), servers.free_port(), servers.free_port()
    doors = f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured}"
    module = "org.apache.kafka.common.security"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{doors},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": doors,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(work / "data"),
        "num.partitions": "2",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{module}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
    }
    properties = work / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = ["java", "-Xmx1G", "-Dorg.slf4j.simpleLogger.logFile=System.out", "-cp"]
    java.append(f"{kafka.jars(servers.KAFKA_VERSION)}/*")
    user = f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"
    make = ["kafka.tools.StorageTool", "format", "-t", "a29ob3J0LWJlbmNoLTAwMQ", "-c", str(properties)]
    subprocess.run([*java, *make, "--add-scram", user], check=True, capture_output=True)
    with servers.running("Kafka", [*java, "kafka.Kafka", str(properties)], port, work):
        yield Secured(f"127.0.0.1:{port}", f"127.0.0.1:{secured}", authority)
