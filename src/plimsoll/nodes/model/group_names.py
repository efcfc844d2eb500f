"""Ids of groups that auto-provisioning creates, and the hash of a profile. Pure.

An id contains a prefix and the machine type; the rest is a hash of the purpose of the group and of the second of its
creation. So two groups of one type created together differ, and the same plan gives the same ids.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from plimsoll.objects.api.nodes import Taint

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SUFFIX_LENGTH: Final = 8
_REFUSED: Final = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What ids a provider takes."""

    underscores: bool = True
    longest: int = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What a group is made for."""

    labels: Mapping[str, str]
    taints: Iterable[Taint]
    zone: str
    second: int
    """When, in whole seconds."""


def generate_group_id(
    prefix: str, machine_type: str, making: Making, *, naming: Naming, taken: Container[str] = ()
) -> str:
    """An unused id: if a hash collides, the next one is taken."""
    attempt = 0
    while (found := _format_name(prefix, machine_type, build_suffix(making, attempt), naming)) in taken:
        attempt += 1
    return found


def build_suffix(making: Making, attempt: int = 0) -> str:
    again = (attempt,) if attempt else ()
    return _hash_content((_to_tuple(making.labels, making.taints), making.zone, making.second, *again))


def hash_profile(labels: Mapping[str, str], taints: Iterable[Taint]) -> str:
    """Short enough for a label's value."""
    return _hash_content(_to_tuple(labels, taints))


def is_ours(group: str, prefix: str) -> bool:
    """Whether an id says that auto-provisioning made the group: by the name at its end, where it is a path."""
    return group.rpartition("/")[2].startswith((f"{prefix}_", f"{prefix}-"))


def _format_name(prefix: str, machine_type: str, ending: str, naming: Naming) -> str:
    """Prefix and suffix stay whole; a type's name that is too long is cut."""
    room = max(0, naming.longest - len(prefix) - len(ending) - 2)
    if naming.underscores:
        return f"{prefix}_{machine_type[:room]}_{ending}"
    kind = _REFUSED.sub("-", machine_type.lower())[:room].strip("-")
    return f"{prefix.lower()}-{kind}-{ending}"


def _to_tuple(labels: Mapping[str, str], taints: Iterable[Taint]) -> tuple[object, ...]:
    named = sorted((taint.key, taint.value, taint.effect) for taint in taints)
    return tuple(sorted(labels.items())), tuple(named)


@lru_cache(maxsize=1024)
def _hash_content(content: tuple[object, ...]) -> str:
    """Hundreds of machine types share a few profiles."""
    number = int.from_bytes(hashlib.sha256(json.dumps(content).encode()).digest()[:16])
    digits = []
    for _ in range(_SUFFIX_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)
