"""The 32-bit FNV hashes, for names that must equal those of programs written in Go (`hash/fnv`)."""

from __future__ import annotations

from typing import Final

_OFFSET: Final = 0x811C9DC5
_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


def hash_fnv1_32(data: bytes) -> int:
    """Go's `fnv.New32`: multiply, then exclusive or."""
    value = _OFFSET
    for byte in data:
        value = ((value * _PRIME) & _MASK) ^ byte
    return value


def hash_fnv1a_32(data: bytes) -> int:
    """Go's `fnv.New32a`: exclusive or, then multiply."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value
