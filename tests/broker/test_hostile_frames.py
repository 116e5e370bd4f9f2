"""Bytes that no client would send: the connection that they come on is answered or closed, and nobody else notices."""

import io
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from kohort.broker.api import all_apis
from kohort.errors import ErrorCode
from tests.broker.random_requests import random_entity
from tests.broker.running import Running, running
from tests.broker.served import served
from tests.broker.wire_client import Closed, WireClient, request_bytes

API_VERSIONS, METADATA, FIND_COORDINATOR, JOIN_GROUP, OFFSET_COMMIT = 18, 3, 10, 11, 8
APIS = all_apis()
MUTATIONS = 25
_TWO_GIB = 0x7FFF_FFFF
_MIB = 1 << 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Running]:
    with running(settings={"offsets.topic.num.partitions": "2"}) as broker:
        yield broker


@pytest.fixture
def client(broker: Running) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


@pytest.fixture(autouse=True)
def others_are_served(broker: Running) -> Iterator[None]:
    """Somebody else's connection, open all the while."""
    with broker.client() as other:
        assert other.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
        yield
        assert other.ask(API_VERSIONS, 0).error_code == ErrorCode.NONE
        assert other.ask(METADATA, 9, topics=[]).cluster_id == "kohort"


def head(api_key: int, version: int, *, client_id: bytes | None = None) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", api_key, version, 7, length) + (client_id or b"")


def is_closed(client: WireClient) -> bool:
    with pytest.raises(Closed):
        client.receive_frame()
    return True


def frames_until_the_end(client: WireClient) -> list[bytes]:
    """Say that nothing more will come, and take all that does."""
    client.finish_sending()
    return list(client.remaining_frames())


class TestFrames:
    @pytest.mark.parametrize("size", [-1, -2, -0x8000_0000, _TWO_GIB, 104_857_601])
    def test_a_length_that_cannot_be_ends_the_connection(self, client: WireClient, size: int):
        client.send_raw(struct.pack(">i", size) + b"x" * 100)

        assert is_closed(client)

    @pytest.mark.parametrize("size", range(10))
    def test_a_frame_that_is_shorter_than_any_request_ends_the_connection(self, client: WireClient, size: int):
        client.send_frame(b"\0" * size)

        assert is_closed(client)

    @pytest.mark.parametrize("seed", range(30))
    def test_random_bytes_end_the_connection(self, client: WireClient, seed: int):
        noise = random.Random(seed)
        client.send_raw(noise.randbytes(noise.randrange(4, 5_000)))

        frames_until_the_end(client)

    def test_half_a_request_is_waited_for_and_then_served(self, client: WireClient):
        frame = request_bytes(METADATA, 4, 1, "half", {"topics": []})
        whole = struct.pack(">i", len(frame)) + frame
        for byte in whole[:-1]:
            client.send_raw(bytes([byte]))
        client.send_raw(whole[-1:])

        assert client.receive_frame()[:4] == (1).to_bytes(4, "big")

    def test_half_a_request_and_the_end_is_no_request(self, client: WireClient):
        frame = request_bytes(METADATA, 4, 1, "half", {"topics": []})
        client.send_raw(struct.pack(">i", len(frame)) + frame[:-1])

        assert frames_until_the_end(client) == []

    def test_whole_requests_before_a_bad_one_are_answered(self, client: WireClient):
        client.send(METADATA, 4, topics=[])
        client.send_raw(struct.pack(">i", -1))

        assert client.receive().cluster_id == "kohort"
        assert is_closed(client)

    def test_a_client_id_that_is_longer_than_its_request_ends_the_connection(self, client: WireClient):
        client.send_frame(struct.pack(">hhih", METADATA, 4, 1, 1_000) + b"short")

        assert is_closed(client)

    def test_a_client_id_that_is_no_text_is_none_of_our_business(self, client: WireClient):
        client.send_frame(head(METADATA, 1, client_id=b"\xff\xfe\x80") + struct.pack(">i", 0))

        assert client.receive_frame()[:4] == (7).to_bytes(4, "big")


class TestUnknownRequests:
    @pytest.mark.parametrize("api_key", [-1, -32_768, 32_767, 1_000, 4, 5, 6, 7])
    def test_an_api_that_is_not_served_ends_the_connection(self, client: WireClient, api_key: int):
        assert api_key not in APIS
        client.send_frame(head(api_key, 0) + b"\0" * 20)

        assert is_closed(client)

    @pytest.mark.parametrize("api_key", [key for key in APIS if key != API_VERSIONS])
    def test_a_version_that_is_not_served_ends_the_connection(self, broker: Running, api_key: int):
        for version in (APIS[api_key].first - 1, APIS[api_key].last + 1, 32_767, -32_768):
            with broker.client() as client:
                client.send_frame(head(api_key, version) + b"\0" * 50)

                assert is_closed(client)

    @pytest.mark.parametrize("version", [APIS[API_VERSIONS].last + 1, 100, 32_767, -1])
    def test_a_client_that_is_too_new_hears_which_version_we_speak(self, client: WireClient, version: int):
        client.send_frame(head(API_VERSIONS, version, client_id=b"new") + b"\x01\x02\x03 whatever may stand here")

        frame = client.receive_frame()

        answer, size = entity_reader(load_response_schema(API_VERSIONS, 0))(frame, 4)
        assert (frame[:4], 4 + size) == ((7).to_bytes(4, "big"), len(frame))
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(known.api_key, known.max_version) for known in answer.api_keys] == [
            (API_VERSIONS, APIS[API_VERSIONS].last)
        ]
        assert client.ask(API_VERSIONS, 2).error_code == ErrorCode.NONE  # the connection goes on


class TestLies:
    @pytest.mark.parametrize("length", [1, 100, 32_767, -2, -32_768])
    def test_a_string_that_is_longer_than_its_frame_ends_the_connection(self, client: WireClient, length: int):
        client.send_frame(head(FIND_COORDINATOR, 0) + struct.pack(">h", length))

        assert is_closed(client)

    @pytest.mark.parametrize("count", [2_000_000_000, _TWO_GIB, 2, -2, -0x8000_0000])
    def test_an_array_that_claims_more_than_there_is_ends_the_connection(self, client: WireClient, count: int):
        client.send_frame(head(METADATA, 1) + struct.pack(">i", count))

        assert is_closed(client)

    @pytest.mark.parametrize("count", [2_000_000_000, 0xFFFF_FFFF, 3])
    def test_a_compact_array_that_claims_more_than_there_is_ends_the_connection(self, client: WireClient, count: int):
        client.send_frame(head(METADATA, 9) + b"\0" + _varint(count))

        assert is_closed(client)

    @pytest.mark.parametrize("tail", [b"\xff" * 10, b"\x80" * 4, b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\x03"])
    def test_tagged_fields_that_do_not_end_end_the_connection(self, client: WireClient, tail: bytes):
        client.send_frame(head(METADATA, 9) + tail)

        assert is_closed(client)

    def test_entries_without_number_end_the_connection_however_small_they_are(self, client: WireClient):
        client.send_frame(head(METADATA, 9) + b"\0" + _varint(1_000_001) + b"\x01\x00" * 1_000_000 + b"\0\0\0\0")

        assert is_closed(client)


@pytest.mark.parametrize(
    ("api_key", "version"), [(a.key, v) for a in APIS.values() for v in range(a.first, a.last + 1)]
)
def test_a_request_that_was_tampered_with_is_answered_or_ends_the_connection(
    broker: Running, api_key: int, version: int
):
    """Nothing of it may stay unhandled in the broker: `running` looks at that when it ends, and we after each."""
    noise = random.Random(api_key * 1_000 + version)
    schema = load_request_schema(api_key, version)
    for _ in range(MUTATIONS):
        out = io.BytesIO()
        entity_writer(schema)(out, random_entity(schema, noise))
        body = out.getvalue()
        tags = b"\0" if schema.__flexible__ else b""
        for sent in (body, _tampered(body, noise)):
            with broker.client() as client:
                client.send_frame(head(api_key, version, client_id=b"tamperer") + tags + sent)
                frames = frames_until_the_end(client)
            assert all(frame[:4] == (7).to_bytes(4, "big") for frame in frames)
            assert not broker.unhandled, (sent, broker.unhandled)


def _tampered(body: bytes, noise: random.Random) -> bytes:
    data = bytearray(body)
    for _ in range(noise.randint(1, 4)):
        place = noise.randrange(len(data) + 1)
        kind = noise.randrange(6)
        if kind == 0:
            del data[place:]
        elif kind == 1:
            data[place:place] = noise.randbytes(noise.randint(1, 8))
        elif kind == 2:
            data[place : place + 1] = bytes([noise.randrange(256)])
        elif kind == 3:
            data[place : place + 4] = noise.choice(
                [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"]
            )
        elif kind == 4:
            del data[place : place + noise.randint(1, 4)]
        else:
            data[place:place] = data[: noise.randint(1, 30)]
    return bytes(data)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


# Memory, measured from outside


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
class TestMemory:
    def test_claims_cost_nothing(self):
        with served() as (port, most_memory):
            with WireClient(port) as client:
                client.ask(METADATA, 9, topics=[])
                before = most_memory()
            for _ in range(50):
                for lie in (
                    struct.pack(">i", _TWO_GIB),
                    struct.pack(">i", 100 * _MIB) + head(METADATA, 1),
                    _framed(head(METADATA, 1) + struct.pack(">i", 2_000_000_000)),
                    _framed(head(METADATA, 9) + b"\0" + _varint(2_000_000_000)),
                    _framed(head(OFFSET_COMMIT, 2) + struct.pack(">h", 32_767)),
                ):
                    with WireClient(port) as client:
                        client.send_raw(lie)
                        frames_until_the_end(client)
            assert most_memory() - before < 8 * _MIB

    def test_many_small_entries_cost_little(self):
        with served() as (port, most_memory):
            with WireClient(port) as client:
                client.ask(METADATA, 9, topics=[])
            before = most_memory()
            entries = 10_000_000
            frame = head(METADATA, 9) + b"\0" + _varint(entries + 1) + b"\x01\x00" * entries + b"\0\0\0\0"
            for _ in range(3):
                with WireClient(port) as client:
                    client.send_frame(frame)
                    assert is_closed(client)
            grown = most_memory() - before
            assert grown < 4 * len(frame), f"{grown / _MIB:.0f} MiB for a frame of {len(frame) / _MIB:.0f} MiB"

    def test_who_sends_much_while_he_waits_is_not_listened_to(self):
        """A member that waits for its group, and sends a hundred large requests meanwhile."""
        with served() as (port, most_memory), WireClient(port) as first, WireClient(port) as second:
            first.ask(FIND_COORDINATOR, 2, key="g")
            joining = {
                "group_id": "g",
                "session_timeout": 60_000,
                "rebalance_timeout": 60_000,
                "protocol_type": "consumer",
                "protocols": [{"name": "range", "metadata": b""}],
            }
            first.ask(JOIN_GROUP, 3, **joining)
            before = most_memory()
            second.send(JOIN_GROUP, 3, **joining)  # waits for the first, who does not come again
            second.send_until_it_blocks(_framed(head(METADATA, 9) + bytes(4 * _MIB)), limit=400 * _MIB)
            assert first.ask(METADATA, 9, topics=[]).cluster_id == "kohort"
            assert most_memory() - before < 32 * _MIB


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame
