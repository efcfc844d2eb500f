"""The hashes equal Go's `hash/fnv`."""

from __future__ import annotations

import pytest

from plimsoll.objects.fnv import hash_fnv1_32, hash_fnv1a_32


@pytest.mark.parametrize(("data", "hashed"), [(b"", 0x811C9DC5), (b"a", 0x050C5D7E), (b"foobar", 0x31F0B262)])
def test_fnv_1_equals_published_values(data: bytes, hashed: int):
    assert hash_fnv1_32(data) == hashed


@pytest.mark.parametrize(("data", "hashed"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_fnv_1a_equals_published_values(data: bytes, hashed: int):
    assert hash_fnv1a_32(data) == hashed
