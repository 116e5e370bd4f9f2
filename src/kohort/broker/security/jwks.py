"""The keys that tokens of OAUTHBEARER are signed with: JSON Web Keys from a file or from one address.

Which address that is stands in the broker's own settings and nowhere else; what a token says of where its key might be
is not looked at. Only keys count that show something to everybody and sign with something that stays secret: with a
key that both sides share, whoever checks tokens could make them.
"""

import asyncio
import contextlib
import json
import logging
import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kohort.broker.security.listener_settings import ListenerConfig
from kohort.broker.setting_kinds import BadSetting
from kohort.errors import KohortError

logger = logging.getLogger(__name__)

_URL, _LOCATION = "sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwks.location"
_ALGORITHMS = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}
"""What each kind of key can sign with."""
_LEAST_RSA_BITS = 2048
_MOST_BYTES = 1 << 20
_PATIENCE_S = 10.0
_OK = 200


class BadKeys(KohortError):
    """What is no set of keys."""


class SigningKey(NamedTuple):
    """A key that tokens can be checked with."""

    key_id: str | None
    algorithms: tuple[str, ...]
    key: Any


def parse_keys(data: bytes) -> tuple[SigningKey, ...]:
    """The keys of a set that are of use; `BadKeys` if there is none."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise BadKeys("it is not JSON") from None
    entries = told.get("keys") if isinstance(told, dict) else None
    if not isinstance(entries, list):
        raise BadKeys("it has no list of keys")
    found = tuple(key for entry in entries if isinstance(entry, dict) and (key := _parsed(entry)) is not None)
    if not found:
        raise BadKeys("it has no key that signatures can be checked with")
    return found


def _parsed(entry: dict[str, Any]) -> SigningKey | None:
    import jwt

    kind, curve, key_id = entry.get("kty"), entry.get("crv"), entry.get("kid")
    algorithms = _ALGORITHMS.get((str(kind), None if kind == "RSA" else str(curve)), ())
    if entry.get("alg") is not None:
        algorithms = tuple(algorithm for algorithm in algorithms if algorithm == entry["alg"])
    if not algorithms or entry.get("use", "sig") != "sig" or not isinstance(key_id, str | None):
        return None
    public = {name: value for name, value in entry.items() if name in ("kty", "crv", "n", "e", "x", "y")}
    try:
        key = jwt.PyJWK(public, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if kind == "RSA" and key.key_size < _LEAST_RSA_BITS:
        return None
    return SigningKey(key_id, algorithms, key)


class Keys:
    """The keys as they are known now."""

    def __init__(self) -> None:
        self._keys: Sequence[SigningKey] = ()

    def find(self, key_id: str | None, algorithm: str) -> Any:
        """The key for a token that says this of itself; None if there is none. Without an id there must be just one."""
        found = [one.key for one in self._keys if algorithm in one.algorithms and key_id in (None, one.key_id)]
        if len(found) == 1:
            return found[0]
        self.miss()
        return None

    def miss(self) -> None:
        """A token has come whose key is not known."""

    def use(self, data: bytes) -> None:
        self._keys = parse_keys(data)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to look for newer ones."""

    def refresh(self, *, even_if_unchanged: bool = False) -> None:
        """Look whether there are newer ones."""

    async def stop(self) -> None:
        """Look no more."""


class KeysInFile(Keys):
    """A file that is read again when it has changed; one that cannot be read changes nothing."""

    def __init__(self, location: str) -> None:
        super().__init__()
        self._path = Path(location)
        self._look = self._looked()
        try:
            self.use(self._path.read_bytes())
        except (OSError, BadKeys) as error:
            raise BadSetting(f"{_LOCATION}: {location}: {getattr(error, 'strerror', None) or error}") from None

    def refresh(self, *, even_if_unchanged: bool = False) -> None:
        look = self._looked()
        if look == self._look and not even_if_unchanged:
            return
        self._look = look
        try:
            self.use(self._path.read_bytes())
        except (OSError, BadKeys) as error:
            logger.error("the keys of tokens stay as they were: %s: %s", self._path, error)
        else:
            logger.info("there are new keys of tokens: %s", self._path)

    def _looked(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


class KeysAtUrl(Keys):
    """Keys that are fetched now and then, and when a token comes whose key is not known; not too often for that."""

    def __init__(self, config: ListenerConfig) -> None:
        super().__init__()
        url = config.sasl_oauthbearer_jwks_endpoint_url
        assert url is not None
        self._url = _checked(url)
        self._refresh_s = config.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000
        self._backoff_s = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms / 1000
        self._longest_backoff_s = config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms / 1000
        self._wanted = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._fetching = loop.create_task(self._fetch_on())

    def miss(self) -> None:
        self._wanted.set()

    async def stop(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    async def _fetch_on(self) -> None:
        backoff_s = self._backoff_s
        while True:
            self._wanted.clear()
            try:
                self.use(await self._fetch())
            except (_FetchFailed, BadKeys) as error:
                logger.error("the keys of tokens stay as they were: %s: %s", self._url, error)
                await asyncio.sleep(min(backoff_s, self._longest_backoff_s))
                backoff_s = min(backoff_s * 2, self._longest_backoff_s)
                continue
            backoff_s = self._backoff_s
            soonest_s = min(self._longest_backoff_s, self._refresh_s)
            await asyncio.sleep(soonest_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), self._refresh_s - soonest_s)

    async def _fetch(self) -> bytes:
        """Nobody can send us elsewhere, keep us waiting, or tell us more than we can hold."""
        import aiohttp  # not needed without an address, and large

        timeout = aiohttp.ClientTimeout(total=_PATIENCE_S)
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
                session.get(self._url, allow_redirects=False) as answer,
            ):
                if answer.status != _OK:
                    raise _FetchFailed(f"status {answer.status}")
                data = b""
                async for piece in answer.content.iter_chunked(1 << 16):
                    data += piece
                    if len(data) > _MOST_BYTES:
                        raise _FetchFailed(f"more than {_MOST_BYTES} bytes")
                return data
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _FetchFailed(str(error) or type(error).__name__) from None


class _FetchFailed(KohortError):
    """Keys could not be fetched."""


def keys_of(config: ListenerConfig) -> Keys:
    """What the settings say; `BadSetting` if they say nothing, or something else than a file or an https address."""
    url, location = config.sasl_oauthbearer_jwks_endpoint_url, config.sasl_oauthbearer_jwks_location
    if bool(url) == bool(location):
        raise BadSetting(f"OAUTHBEARER needs {_URL} or {_LOCATION}: the keys that tokens are signed with")
    return KeysAtUrl(config) if url else KeysInFile(str(location))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme == "https" and bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise BadSetting(f"{_URL} must be an address that begins with https:// and has no user in it")
    return url
