"""The keys of the built-in issuer, in a file that only its owner may read.

The newest key signs. Older ones stay published until every token that they signed has expired. Two processes may
change the file at once (the service rotates, the command line makes the first key), so each change holds a lock.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from contextlib import contextmanager
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import jwt
import msgspec
import structlog
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.fleet.auth.key_sets import ALGORITHM
from plimsoll.fleet.errors import UnusableKeys
from plimsoll.runtime.atomic_files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy

KEYS_FILE: Final = "fleet-issuer-keys.json"
"""Its name in the data directory of the service."""
ROTATION_S: Final = 30 * 86_400.0
RETIREMENT_S: Final = 2 * 86_400.0
"""How long a key is published after a newer one has replaced it."""
LONGEST_LIFETIME_S: Final = 86_400.0
"""No token lives longer, so none outlives its key."""
_BITS: Final = 2048
_log = structlog.get_logger("plimsoll.fleet.auth")


class SigningKey(Value):
    """A key of the issuer. `pem` is the private key."""

    id: str
    created_at: datetime
    pem: str


class _KeyDocument(Value):
    version: int
    keys: tuple[SigningKey, ...]
    """Oldest first."""


class IssuerKeys:
    """The keys in a file. The file is made with a first key if it is missing. Also a `KeySource` of its JWKS."""

    def __init__(self, file: Path, *, clock: Clock, entropy: Entropy) -> None:
        self.name = f"the keys of {file}"
        self._file = file
        self._clock = clock
        self._entropy = entropy
        self._loaded: tuple[tuple[int, int], tuple[SigningKey, ...]] | None = None

    def get_signing_key(self) -> SigningKey:
        """The newest key. It is replaced first if it is too old. Raises `UnusableKeys` if there is none."""
        keys = self._load()
        if self._is_current(keys):
            return keys[-1]
        try:
            with self._hold_lock():
                keys = self._load()  # another process may have been faster
                return keys[-1] if self._is_current(keys) else self._add_key(keys)
        except UnusableKeys as error:
            if not keys:
                raise
            # A full disk, or a directory that is read-only: an old key is better than no tokens.
            _log.warning("keys.not_replaced", source=self.name, problem=str(error))
            return keys[-1]

    def rotate(self) -> SigningKey:
        """Adds a key, which signs from now on. Raises `UnusableKeys`."""
        with self._hold_lock():
            return self._add_key(self._load())

    async def read(self) -> bytes | None:
        """The JWKS document."""
        try:
            return self.build_key_set()
        except UnusableKeys as error:
            _log.warning("keys.unreadable", source=self.name, problem=str(error))
            return None

    def build_key_set(self) -> bytes:
        """The public parts of all keys that may have signed a token that is still valid."""
        self.get_signing_key()
        return msgspec.json.encode({"keys": [_build_public(key) for key in self._load()]})

    def _is_current(self, keys: tuple[SigningKey, ...]) -> bool:
        return bool(keys) and add_seconds(keys[-1].created_at, ROTATION_S) > self._clock.now()

    def _add_key(self, keys: tuple[SigningKey, ...]) -> SigningKey:
        now = self._clock.now()
        private = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
        added = SigningKey(id=self._entropy.generate_uid(), created_at=now, pem=pem)
        # A key is retired by the one after it, at whose creation the retirement begins.
        kept = tuple(
            key
            for key, successor in itertools.pairwise((*keys, added))
            if add_seconds(successor.created_at, RETIREMENT_S) > now
        )
        try:
            replace_file(self._file, msgspec.json.encode(_KeyDocument(version=1, keys=(*kept, added))))
        except OSError as error:
            raise UnusableKeys(f"the keys of the issuer cannot be written: {error}", path=str(self._file)) from error
        return added

    def _load(self) -> tuple[SigningKey, ...]:
        try:
            with self._file.open("rb") as opened:
                state = os.fstat(opened.fileno())
                stamp = (state.st_ino, state.st_mtime_ns)
                if self._loaded is None or self._loaded[0] != stamp:
                    self._loaded = stamp, msgspec.json.decode(opened.read(), type=_KeyDocument).keys
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnusableKeys(f"the keys of the issuer cannot be read: {error}", path=str(self._file)) from error
        return self._loaded[1]

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lock = self._file.with_name(f".{self._file.name}.lock")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UnusableKeys(f"the keys of the issuer cannot be written: {error}", path=str(self._file)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@lru_cache(maxsize=16)
def load_private_key(pem: str) -> rsa.RSAPrivateKey:
    """The key. Loading checks it, which takes longer than signing, so it is kept."""
    private = load_pem_private_key(pem.encode("ascii"), password=None)
    assert isinstance(private, rsa.RSAPrivateKey)
    return private


def _build_public(key: SigningKey) -> dict[str, Any]:
    public: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(load_private_key(key.pem).public_key(), as_dict=True)
    return {"kty": "RSA", "kid": key.id, "use": "sig", "alg": ALGORITHM, "n": public["n"], "e": public["e"]}
