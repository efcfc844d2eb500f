"""A cache for pods of one template: prepared and validated once for all of them.

A replica set creates pods that differ only in what the server assigns: a name, a uid, a time, managed-field times, and
the name of the token volume. Defaulting, serialising and validating each of them took a twentieth of a busy hour. A pod
with a name of its own does not use the cache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.strategies.interface import ValidationResult

Json = dict[str, Any]

# What each has for itself. Of names that are generated from one prefix all are valid, or none is.
_OWN: Final = frozenset({"name", "uid", "creationTimestamp", "managedFields"})
# As the admission of service accounts names it.
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}")
# Stands for the name of that volume: no byte of any text in UTF-8.
_ANY_VOLUME: Final = b"\xff"
_MOST_KEPT: Final = 64
_LONGEST_KEPT_BYTES: Final = 16_384
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Json)


class PodTemplateCache:
    """What was found good: the text that was prepared, by the text that came, both without what is the pod's own."""

    def __init__(self) -> None:
        self._good: dict[bytes, bytes] = {}
        self._unjudged: tuple[bytes, Json] | None = None
        self._twin: Json | None = None

    def prepare(self, obj: Json, prepare: Callable[[Json], Json]) -> Json:
        """What `prepare` makes of the pod, or has made of its sibling."""
        self._unjudged = self._twin = None
        text = _encode_common(obj)
        known = self._good.get(text)
        if known is not None:
            self._twin = _add_own_fields(known, obj)
            return self._twin
        made = prepare(obj)
        # The condition of a pod that waits at a gate has the pod's own time.
        if text and "conditions" not in made["status"]:
            self._unjudged = (text, made)
        return made

    def validate(self, obj: Json, judge: Callable[[Json], ValidationResult]) -> ValidationResult | None:
        """The result of `judge` for the pod prepared last; None: a pod of the same template was valid before."""
        if obj is self._twin:
            return None
        judgement = judge(obj)
        # Read once: a large pod is prepared in another thread, which sets it as well.
        unjudged = self._unjudged
        if unjudged is not None and obj is unjudged[1] and not (judgement.errors or judgement.warnings):
            if len(self._good) >= _MOST_KEPT:
                self._good.clear()
            self._good[unjudged[0]] = _encode(obj)
        return judgement


def _encode_common(obj: Json) -> bytes:
    """The text that pods of one template share; empty for a pod with a name of its own."""
    if not obj["metadata"].get("generateName"):
        return b""
    text = _encode(obj)
    return text if len(text) <= _LONGEST_KEPT_BYTES else b""


def _encode(obj: Json) -> bytes:
    common = {name: None if name in _OWN else item for name, item in obj["metadata"].items()}
    text = _encoder.encode({**obj, "metadata": common})
    volume = _find_token_volume(obj)
    return text.replace(volume, _ANY_VOLUME) if volume else text


def _add_own_fields(text: bytes, obj: Json) -> Json:
    made: Json = _decoder.decode(text.replace(_ANY_VOLUME, _find_token_volume(obj)))
    metadata, own = made["metadata"], obj["metadata"]
    for name in _OWN:
        if name in own:
            metadata[name] = own[name]
    return made


def _find_token_volume(obj: Json) -> bytes:
    """Empty without one: a name that the user chose is a part of the template."""
    volumes = obj["spec"].get("volumes")
    name = volumes[-1].get("name", "") if volumes else ""
    return name.encode() if _TOKEN_VOLUME.fullmatch(name) else b""
