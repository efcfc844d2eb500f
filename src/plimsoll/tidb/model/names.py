"""Names of the TidbClusters that are made for groups: `auto-` and a hash of what a group is.

The hash is over canonical JSON, so equal groups get equal names on any machine. It has 32 bits and may collide: then
the next `collision` is tried. What a TidbCluster is for is told by its labels, never by its name.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.fnv import fnv1_32
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Container

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
# Go's encoder writes these so that JSON can stand in HTML; older names were made with it.
_ESCAPED: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class NameSeed(Value, rename={}):
    """What makes a group. Neither its count nor the name of its type: changing a limit keeps the name.

    `tas` is the TidbClusterAutoScaler; cpu in thousandths of a core, memory and storage in bytes.
    """

    namespace: str
    tas: str
    component: str
    cpu: int
    memory: int
    storage: int = 0
    labels: dict[str, str] = {}
    collision: int = 0

    def canonical(self) -> bytes:
        """JSON with keys sorted by code point and no blanks; no collision, no such key."""
        seed = msgspec.structs.asdict(self)
        if not self.collision:
            del seed["collision"]
        text = json.dumps(seed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.translate(_ESCAPED).encode()

    def name(self) -> str:
        number = str(fnv1_32(self.canonical()))
        return "auto-" + "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in number)


class FreeName(Value):
    """`collision` is recorded beside the name, so that it can be made again."""

    name: str
    collision: int


def free_name(seed: NameSeed, taken: Container[str]) -> FreeName:
    """The first name of the seed that nobody else has."""
    collision = seed.collision
    while (name := msgspec.structs.replace(seed, collision=collision).name()) in taken:
        collision += 1
    return FreeName(name=name, collision=collision)


def size_suffix(cpu_milli: int, memory_bytes: int, storage_bytes: int) -> str:
    """Tells groups of one type apart after the type was given another size: `ResourceType.group_suffix`."""
    return hashlib.sha256(f"{cpu_milli}/{memory_bytes}/{storage_bytes}".encode()).hexdigest()[:8]
