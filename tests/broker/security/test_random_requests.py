"""Whatever is asked of a broker with an authorizer is answered or ends the connection, by whomever it is asked."""

import io
import random

import pytest
from kio.index import load_request_schema
from kio.serial import entity_writer

from kohort.broker.api import all_apis
from kohort.broker.security.acl import Operation, ResourceType
from kohort.errors import ErrorCode
from tests.broker.random_requests import random_entity
from tests.broker.running import running
from tests.broker.security.somebody import AUTHORIZED, create, entry

API_VERSIONS = 18
TRIES = 6


@pytest.mark.parametrize("super_user", ["ANONYMOUS", "root"])
def test_nothing_stays_unhandled(super_user: str) -> None:
    """`running` looks at that when it ends, and we after each."""
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with running(settings=AUTHORIZED | settings | {"super.users": f"User:{super_user}"}) as broker:
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
            create(broker, entry("User:*", Operation.ALL, kind, "or", prefixed=True))
            create(broker, entry("User:*", Operation.ALL, kind, "g"))
        for api in all_apis().values():
            for version in range(api.first, api.last + 1):
                noise = random.Random(api.key * 1_000 + version)
                schema = load_request_schema(api.key, version)
                for _ in range(TRIES):
                    body = io.BytesIO()
                    entity_writer(schema)(body, random_entity(schema, noise))
                    head = api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff"
                    tags = b"\0" if schema.__flexible__ else b""
                    with broker.client() as client:
                        client.send_frame(head + tags + body.getvalue())
                        client.finish_sending()
                        assert all(frame[:4] == b"\0\0\0\7" for frame in client.remaining_frames())
                    assert not broker.unhandled, (api.key, version, body.getvalue())
        with broker.client() as client:
            assert client.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
