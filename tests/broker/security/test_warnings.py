"""What whoever starts a broker is warned of."""

import re

import pytest

from kohort.broker.security.warnings import warnings_of
from tests.broker.running import running
from tests.broker.security import certificates

OWN = {"ssl.keystore.location": certificates.file_of(certificates.server())}
MUTUAL = {"ssl.truststore.location": certificates.authority_file(), "ssl.client.auth": "required"}
OPEN, READ = "may read, write and delete everything", "reads passwords"


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, []),
        ({"listeners": "PLAINTEXT://localhost:0"}, []),
        ({"listeners": "PLAINTEXT://0.0.0.0:0"}, [OPEN]),
        ({"listeners": "PLAINTEXT://:0"}, [OPEN]),
        ({"listeners": "SSL://0.0.0.0:0", **OWN}, [OPEN]),
        ({"listeners": "SSL://0.0.0.0:0", **OWN, **MUTUAL}, []),
        ({"listeners": "SSL://0.0.0.0:0", **OWN, **MUTUAL, "ssl.client.auth": "requested"}, [OPEN]),
        ({"listeners": "SASL_SSL://0.0.0.0:0", **OWN, "sasl.enabled.mechanisms": "PLAIN"}, []),
        ({"listeners": "SASL_PLAINTEXT://0.0.0.0:0", "sasl.enabled.mechanisms": "PLAIN"}, [READ]),
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN"}, []),
        ({"listeners": "SASL_PLAINTEXT://0.0.0.0:0"}, []),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:0,SASL_PLAINTEXT://0.0.0.0:0",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            },
            [OPEN, READ],
        ),
    ],
)
def test_each_risk_is_one_line(settings: dict[str, str], warnings: list[str]) -> None:
    with running(settings=settings) as broker:
        told = list(warnings_of(broker.server.entrances))
    assert len(told) == len(warnings)
    for line, expected in zip(told, warnings, strict=True):
        assert re.search(expected, line)
        assert "\n" not in line
