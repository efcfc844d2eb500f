"""Secrets in rows: AES-GCM with keys from a file. The id of the key stands beside the secret, for rotation.

The key file has one key per line, `ID:BASE64` with 32 bytes. The first key encrypts, all keys decrypt. To rotate: add
the new key below the others and restart every process, move it to the top and restart one, which encrypts all secrets
with it, and remove the old key.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from plimsoll.fleet.errors import SecretUnreadable, UnusableKeys

if TYPE_CHECKING:
    from pathlib import Path

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MOST_KEYS: Final = 100
_OPTION: Final = "secrets-key-file"


class SecretKeys:
    """Keys by id. Without any, rows with secrets can be neither written nor read."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self.newest = next(iter(keys), "")

    def __repr__(self) -> str:
        return f"SecretKeys({', '.join(self._ciphers)})"

    def encrypt(self, text: str, context: str) -> str:
        """`context` names the row and the column: a secret that was copied to another row is refused."""
        if not text:
            return ""
        if not self.newest:
            raise UnusableKeys("is needed to store a secret; give --secrets-key-file", path=_OPTION)
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._ciphers[self.newest].encrypt(nonce, text.encode(), context.encode())
        return f"{self.newest}:{base64.b64encode(nonce + sealed).decode()}"

    def decrypt(self, stored: str, context: str) -> str:
        if not stored:
            return ""
        key_id, _, data = stored.partition(":")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            known = ", ".join(self._ciphers) or "none"
            raise SecretUnreadable(f"{context}: the key {key_id!r} is not in the key file (it has: {known})")
        try:
            sealed = base64.b64decode(data, validate=True)
            return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context.encode()).decode()
        except (binascii.Error, InvalidTag, ValueError):
            raise SecretUnreadable(f"{context}: the key {key_id!r} does not decrypt the secret") from None

    def has_key(self, key_id: str) -> bool:
        return key_id in self._ciphers


def generate_keys() -> SecretKeys:
    """A key that ends with the process, for a database that does."""
    return SecretKeys({"memory": os.urandom(_KEY_BYTES)})


def read_key_file(file: Path) -> SecretKeys:
    """The keys of a file. Errors name the line, and never the key."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise UnusableKeys(f"{file} cannot be read: {reason}", path=_OPTION) from None
    keys: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            key_id, key = _parse_line(line.strip(), f"{file} line {number}")
            if key_id in keys:
                raise UnusableKeys(f"{file} line {number}: the id {key_id!r} is there twice", path=_OPTION)
            keys[key_id] = key
    if not 1 <= len(keys) <= _MOST_KEYS:
        raise UnusableKeys(f"{file} has {len(keys)} keys; it needs 1 to {_MOST_KEYS}", path=_OPTION)
    return SecretKeys(keys)


def _parse_line(line: str, place: str) -> tuple[str, bytes]:
    key_id, _, text = line.partition(":")
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if not _ID.fullmatch(key_id) or len(key) != _KEY_BYTES:
        raise UnusableKeys(f"{place} is not ID:BASE64 with {_KEY_BYTES} bytes", path=_OPTION)
    return key_id, key


def create_key_file(file: Path, key_id: str) -> None:
    """A new file with one key, readable by its owner only. An existing file is kept."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = f"{key_id}:{base64.b64encode(os.urandom(_KEY_BYTES)).decode()}\n"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as opened:
        opened.write(line)
