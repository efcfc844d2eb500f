"""Removes `apiVersion` and `kind` from objects, so that an object is the same from a list and from a watch.

A watch has them on every object. In a list, servers leave them out of built-in kinds and put them on custom ones. With
both in a cache, an unchanged list would look like a change of each object that a watch delivered. They are removed, not
added, because the list of a hundred thousand pods must be quick and small; the informer knows its kind anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.api.meta import WireObject

W = TypeVar("W", bound="WireObject")

_TYPE_META: Final = ("apiVersion", "kind")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def strip_all(values: Sequence[W]) -> Sequence[W]:
    """Strip a page of objects; nearly free if no object has type metadata."""
    if any(value.kind or value.api_version for value in values):
        return tuple(strip_type_meta(value) for value in values)
    return values


def strip_type_meta(value: W) -> W:
    return msgspec.structs.replace(value, api_version="", kind="") if value.kind or value.api_version else value


def strip_type_meta_with_raw(value: RawObject[Any] | BadObject) -> RawObject[Any] | BadObject:
    """Strip the struct and its bytes, so that both are the same from a list and from a watch."""
    if isinstance(value, BadObject) or not (value.view.kind or value.view.api_version):
        return value
    return RawObject(view=strip_type_meta(value.view), raw=_strip_bytes(value.raw))


def _strip_bytes(raw: bytes) -> bytes:
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw])
    except _UNREADABLE:
        # For example, a key that is not a string. The object was decoded nevertheless, and its bytes stay as they are.
        return raw
    return msgspec.json.encode({key: value for key, value in members.items() if key not in _TYPE_META})
