"""Names of the TidbClusters that are created for groups: `auto-` and a hash of the group.

The hash is computed over canonical JSON, so equal groups get equal names on every machine. It has 32 bits and may
collide; then the next `collision` is tried. The labels of a TidbCluster say what it is for, never its name.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.names import encode_safe_string
from plimsoll.core.values import Value
from plimsoll.objects.fnv import hash_fnv1_32

if TYPE_CHECKING:
    from collections.abc import Container

# Go's encoder writes these so that JSON can stand in HTML; older names were made with it.
_ESCAPED: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


class NameSeed(Value, rename={}):
    """What identifies a group. It holds neither the count nor the name of the type, so changing a limit keeps the name.

    `tas` is the TidbClusterAutoScaler. `cpu` is in thousandths of a core, `memory` and `storage` are in bytes.
    """

    namespace: str
    tas: str
    component: str
    cpu: int
    memory: int
    storage: int = 0
    labels: dict[str, str] = {}
    collision: int = 0

    def encode(self) -> bytes:
        """JSON with keys sorted by code point and without blanks. Without a collision there is no such key."""
        seed = msgspec.structs.asdict(self)
        if not self.collision:
            del seed["collision"]
        text = json.dumps(seed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.translate(_ESCAPED).encode()

    def build_name(self) -> str:
        return "auto-" + encode_safe_string(str(hash_fnv1_32(self.encode())))


class FreeName(Value):
    """A name that is not taken. `collision` is recorded with the name, so that the name can be computed again."""

    name: str
    collision: int


def find_free_name(seed: NameSeed, taken: Container[str]) -> FreeName:
    """The first name of the seed that is not taken."""
    collision = seed.collision
    while (name := msgspec.structs.replace(seed, collision=collision).build_name()) in taken:
        collision += 1
    return FreeName(name=name, collision=collision)


def make_size_suffix(cpu_milli: int, memory_bytes: int, storage_bytes: int) -> str:
    """A suffix that separates groups of one type after its size was changed: `ResourceType.group_suffix`."""
    return hashlib.sha256(f"{cpu_milli}/{memory_bytes}/{storage_bytes}".encode()).hexdigest()[:8]
