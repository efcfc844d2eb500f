"""Names of the TidbClusters that are made for groups: `auto-` and a hash of what a group is.

The hash is over canonical JSON, so equal groups get equal names on any machine. It has 32 bits and may collide: then
the next `collision` is tried. What a TidbCluster is for is told by its labels, never by its name.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Container

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619
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


def fnv1_32(data: bytes) -> int:
    hashed = _FNV_OFFSET
    for byte in data:
        hashed = (hashed * _FNV_PRIME) % 2**32 ^ byte
    return hashed


def read_seed(data: bytes) -> NameSeed:
    """From JSON. Amounts are whole numbers in our units, or texts as Kubernetes writes them: "1000m", "8Gi".

    Raises `InvalidInput`, naming the field; a field that is not of the seed would not be in the name, so it is refused.
    """
    try:
        given = msgspec.json.decode(data, type=dict[str, Any])
        present = {key: value for key, value in given.items() if value is not None}
        unknown = present.keys() - set(NameSeed.__struct_fields__)
        if unknown:
            raise InvalidInput("is not part of a seed", path=min(unknown))
        for field in ("cpu", "memory", "storage"):
            if isinstance(present.get(field), str):
                present[field] = _amount(field, present[field])
        return msgspec.convert(present, NameSeed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not a seed: {error}") from error


def _amount(field: str, text: str) -> int:
    try:
        quantity = Quantity.parse(text)
    except InvalidInput as error:
        raise InvalidInput(error.problem, path=field) from error
    return quantity.milli() if field == "cpu" else quantity.ceil()
