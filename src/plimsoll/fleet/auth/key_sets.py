"""Public keys of issuers: JWKS documents by URL and by file, cached, and read again when a key id is unknown.

A key that an issuer has withdrawn is trusted until the next refresh. A source that fails keeps the keys that it had.
The keys of the built-in issuer sign for it alone, and no other key does: the operator of another issuer cannot make
tokens of administrators.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

import jwt
import msgspec
import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from plimsoll.web.client import Request, RequestFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.web.client import HttpClient

ALGORITHM: Final = "RS256"
REFRESH_S: Final = 300.0
"""The time after which a withdrawn key is no longer trusted."""
SHORTEST_REFRESH_S: Final = 10.0
"""Tokens with made-up key ids must not make one request to the issuer each."""
_MOST_KEYS: Final = 100
_SMALLEST_BITS: Final = 2048

_log = structlog.get_logger("plimsoll.fleet.auth")


class KeySource(Protocol):
    """A place that holds a JWKS document."""

    @property
    def name(self) -> str: ...

    async def read(self) -> bytes | None:
        """The document. None: it cannot be read now."""
        ...


class KeyFile:
    """A JWKS document in a file."""

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        self._file = file

    async def read(self) -> bytes | None:
        try:
            return self._file.read_bytes()
        except OSError as error:
            _log.warning("keys.unreadable", source=self.name, problem=error.strerror)
            return None


class KeyAddress:
    """A JWKS document at a URL."""

    def __init__(self, url: str, *, web: HttpClient) -> None:
        self.name = url
        self._web = web

    async def read(self) -> bytes | None:
        answer = await self._web.send(Request(method="GET", url=self.name))
        if isinstance(answer, RequestFailed):
            _log.warning("keys.unreachable", source=self.name, problem=answer.problem)
            return None
        if answer.status != HTTPStatus.OK:
            _log.warning("keys.unreadable", source=self.name, problem=f"status {answer.status}")
            return None
        return answer.body


class KeySet:
    """The keys of several sources by key id."""

    def __init__(
        self, sources: Sequence[KeySource], *, clock: Clock, issuers: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """`issuers`: those that a source, by its name, signs for alone. Other sources sign for the others."""
        self._sources = tuple(sources)
        self._issuers = dict(issuers or {})
        self._clock = clock
        self._keys: dict[str, dict[str, RSAPublicKey]] = {}
        self._read_s: float | None = None
        self._reading = asyncio.Lock()

    async def find_key(self, key_id: str) -> RSAPublicKey | None:
        """The key of this id. Sources are read again if it is unknown, but not at every attempt.

        A request with an unknown key waits for a reading that is under way: the key may come with it.
        """
        if self._is_older_than(REFRESH_S) and not (self._reading.locked() and self._get_key(key_id)):
            await self._refresh(REFRESH_S)
        key = self._get_key(key_id)
        if key is None and (self._reading.locked() or self._is_older_than(SHORTEST_REFRESH_S)):
            await self._refresh(SHORTEST_REFRESH_S)
            key = self._get_key(key_id)
        return key

    def may_sign(self, key_id: str, issuer: str) -> bool:
        """Whether a known key signs for an issuer."""
        source = next((name for name, keys in self._keys.items() if key_id in keys), "")
        if source in self._issuers:
            return issuer in self._issuers[source]
        return not any(issuer in owned for owned in self._issuers.values())

    def _is_older_than(self, age_s: float) -> bool:
        return self._read_s is None or self._clock.monotonic_s() - self._read_s >= age_s

    def _get_key(self, key_id: str) -> RSAPublicKey | None:
        return next((keys[key_id] for keys in self._keys.values() if key_id in keys), None)

    async def _refresh(self, age_s: float) -> None:
        """Reads the sources, unless another request has done so meanwhile."""
        async with self._reading:
            if not self._is_older_than(age_s):
                return
            for source in self._sources:
                await self._read_source(source)
            # Those that wait for the lock find the keys fresh, also when a source took long to fail.
            self._read_s = self._clock.monotonic_s()

    async def _read_source(self, source: KeySource) -> None:
        document = await source.read()
        if document is None:
            return
        keys = parse_key_set(document)
        if keys is None:
            _log.warning("keys.unreadable", source=source.name, problem="not a JWKS document")
        else:
            self._keys[source.name] = keys


def parse_key_set(document: bytes) -> dict[str, RSAPublicKey] | None:
    """The RSA keys of a JWKS document that sign, by key id. None: it is no such document. Other keys are left out."""
    try:
        listed = msgspec.json.decode(document)["keys"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return None
    if not isinstance(listed, list):
        return None
    keys: dict[str, RSAPublicKey] = {}
    for entry in listed[:_MOST_KEYS]:
        key = _parse_key(entry)
        if key is not None:
            keys[entry["kid"]] = key
    return keys


def _parse_key(entry: Any) -> RSAPublicKey | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str):
        return None
    if entry.get("kty") != "RSA" or entry.get("use", "sig") != "sig" or entry.get("alg", ALGORITHM) != ALGORITHM:
        return None
    public = {name: entry.get(name) for name in ("kty", "n", "e")}
    try:
        key = jwt.PyJWK(public, algorithm=ALGORITHM).key
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None
    return key if isinstance(key, RSAPublicKey) and key.key_size >= _SMALLEST_BITS else None
