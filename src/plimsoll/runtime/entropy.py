"""The two implementations of `plimsoll.core.entropy.Entropy`: the operating system's, and a repeatable one.

`SeededEntropy` is its own generator, not `random.Random`: only a part of what `random` draws stays the same between
Python versions, and it has streams by name: a new consumer takes `spawn_child("kubelet")` and changes no other numbers.
It is not for secrets; live tokens come from `SystemEntropy`.
"""

from __future__ import annotations

import base64
import hashlib
import random
import secrets
import uuid

from plimsoll.core.names import SAFE_ALPHABET

_BLOCK_BYTES = 64
_FAIR_BYTES = 256 // len(SAFE_ALPHABET) * len(SAFE_ALPHABET)


class SystemEntropy:
    """The randomness of the operating system, for production."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def generate_uid(self) -> str:
        return str(uuid.uuid4())

    def generate_suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(SAFE_ALPHABET, k=length))

    def draw_uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def generate_token(self, size_bytes: int = 32) -> str:
        return secrets.token_urlsafe(size_bytes)


class SeededEntropy:
    """A stream that depends on its seed only, not on the machine, the Python version or the hash seed."""

    def __init__(self, seed: int | str) -> None:
        # The kind is part of the key: seed 7 and seed "7" are different streams.
        self._key = hashlib.blake2b(f"{type(seed).__name__}:{seed}".encode()).digest()
        self._blocks_drawn = 0
        self._left = b""

    def spawn_child(self, name: str) -> SeededEntropy:
        """The child stream of that name. It is independent of this stream, of other children and of earlier draws."""
        child = SeededEntropy(0)
        child._key = hashlib.blake2b(b"child:" + name.encode(), key=self._key).digest()
        return child

    def generate_uid(self) -> str:
        drawn = bytearray(self._draw(16))
        # As uuid.UUID(version=4), without creating one: the version, and the variant of RFC 4122.
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        text = drawn.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def generate_suffix(self, length: int = 5) -> str:
        letters = ""
        while missing := length - len(letters):
            # Bytes beyond the last whole alphabet would make its first letters more likely.
            fair = [byte for byte in self._draw(missing) if byte < _FAIR_BYTES]
            letters += "".join([SAFE_ALPHABET[byte % len(SAFE_ALPHABET)] for byte in fair])
        return letters

    def draw_uniform(self, low: float, high: float) -> float:
        """One of 2^53 evenly spaced numbers; `high` itself only by rounding."""
        share = (int.from_bytes(self._draw(8), "big") >> 11) / (1 << 53)
        return low + (high - low) * share

    def generate_token(self, size_bytes: int = 32) -> str:
        return base64.urlsafe_b64encode(self._draw(size_bytes)).rstrip(b"=").decode("ascii")

    def _draw(self, size_bytes: int) -> bytes:
        while len(self._left) < size_bytes:
            counter = self._blocks_drawn.to_bytes(16, "big")
            self._left += hashlib.blake2b(counter, key=self._key, digest_size=_BLOCK_BYTES).digest()
            self._blocks_drawn += 1
        drawn, self._left = self._left[:size_bytes], self._left[size_bytes:]
        return drawn
