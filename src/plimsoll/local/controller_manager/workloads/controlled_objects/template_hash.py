"""The hash of a pod template, for names and labels, and the comparison of templates. Pure.

The hash has the form Kubernetes gives it (a 32-bit FNV-1a number in letters and digits that spell no words), but
Kubernetes hashes the memory of a Go program; this one hashes the canonical JSON, so the values are not a real
cluster's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.names import encode_safe_string
from plimsoll.objects.fnv import hash_fnv1a_32

if TYPE_CHECKING:
    from collections.abc import Mapping

POD_TEMPLATE_HASH: Final = "pod-template-hash"
_MOST_REMEMBERED: Final = 10_000

_canonical = msgspec.json.Encoder(order="sorted")


def compute_template_hash(template: Any, collisions: int | None = None) -> str:
    """The hash of a template and its collision count."""
    salt = b"" if collisions is None else collisions.to_bytes(8, "little", signed=True)
    return encode_safe_string(str(hash_fnv1a_32(_canonical.encode(strip_nulls(template)) + salt)))


def remove_hash_label(template: Mapping[str, Any]) -> dict[str, Any]:
    """A template as the owner of a replica set wrote it, without the label that its hash became."""
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def compute_fingerprint(template: Mapping[str, Any]) -> bytes:
    """Equal for templates that differ in nothing but the hash label."""
    return _canonical.encode(strip_nulls(remove_hash_label(template)))


class Fingerprints:
    """Remembers the fingerprints of objects' templates: they change only with an object's generation."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, bytes]] = {}

    def get_fingerprint(self, uid: str, generation: int, raw: bytes) -> bytes:
        known = self._known.get(uid)
        if known is not None and known[0] == generation:
            return known[1]
        found = compute_fingerprint(msgspec.json.decode(raw)["spec"]["template"])
        if len(self._known) >= _MOST_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[uid] = (generation, found)
        return found


def strip_nulls(value: Any) -> Any:
    """Null means the same as nothing being there; empty maps (`emptyDir: {}`) do not."""
    if isinstance(value, dict):
        return {key: strip_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [strip_nulls(item) for item in value]
    return value
