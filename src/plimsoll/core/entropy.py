"""Randomness as a parameter: uids, name suffixes and jitter come from an `Entropy`, seeded where a run must repeat."""

from __future__ import annotations

from typing import Protocol


class Entropy(Protocol):
    """Operating system randomness in production, a seeded stream elsewhere (`plimsoll.runtime.entropy`)."""

    def generate_uid(self) -> str:
        """A random (version 4) UUID in its text form."""
        ...

    def generate_suffix(self, length: int = 5) -> str:
        """The characters that Kubernetes appends to a generateName: no vowels and no look-alikes."""
        ...

    def draw_uniform(self, low: float, high: float) -> float: ...

    def generate_token(self, size_bytes: int = 32) -> str:
        """A secret as URL-safe text."""
        ...
