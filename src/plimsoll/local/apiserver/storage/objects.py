"""One stored object: its bytes, with labels and fields for selectors, so that no read parses JSON.

The store makes it on a write (labels come from the dict at hand, fields only if a selector uses them), and recovery
from a row. What was not taken then is read from the bytes on first use: most objects of a large store are never
selected by anything.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from plimsoll.local.apiserver.storage.errors import TooLarge

JsonObject = dict[str, Any]
FieldsOf = Callable[[Mapping[str, Any]], dict[str, str]]

LARGEST_OBJECT_BYTES: Final = 1_572_864
"""What etcd accepts in one request by default (1.5 MiB)."""

_MOST_DIGITS: Final = 20
"""Longer whole numbers are none of 64 bits."""
_UNKNOWN: Final[Any] = object()
"""In place of a number that cannot be held."""

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(JsonObject)


class Key(NamedTuple):
    """Where an object lives. `resource` is `group/plural` ("apps/deployments"; "pods" in the core group)."""

    resource: str
    namespace: str
    """Empty for cluster-scoped objects."""
    name: str

    @property
    def path(self) -> str:
        """The place in listing order. As in etcd the slash takes part in it: `a-b/x` stands before `a/x`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Traits:
    """What is known about all objects of one resource."""

    __slots__ = ("fields_are_selected", "fields_of", "resource")

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.fields_of: FieldsOf = _select_no_fields
        self.fields_are_selected = False
        """Most resources are never selected by a field. Once one is, fields are taken from what is written at once."""


def _select_no_fields(_body: Mapping[str, Any]) -> dict[str, str]:
    return {}


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Labels


_labelled: Final = msgspec.json.Decoder(_Labelled)


class Stored(msgspec.Struct, gc=False, eq=False):
    """An object as it was at `revision`. Immutable; the two slots with an underscore are filled on demand.

    `gc=False` keeps a hundred thousand of them out of the garbage collector's sight; nothing they hold refers back.
    """

    traits: Traits
    namespace: str
    name: str
    revision: int
    data: bytes
    """JSON, with the revision in metadata.resourceVersion; keys stand in the order of the dict that was put."""
    _labels: dict[str, str] | None = None
    _fields: dict[str, str] | None = None

    @property
    def key(self) -> Key:
        return Key(self.traits.resource, self.namespace, self.name)

    @property
    def labels(self) -> Mapping[str, str]:
        if self._labels is None:
            self._labels = self._read_labels()
        return self._labels

    @property
    def fields(self) -> Mapping[str, str]:
        """What field selectors compare, by the function that `Store.select_fields` was given for the resource."""
        if self._fields is None:
            self.traits.fields_are_selected = True
            self._fields = self.traits.fields_of(self.decode_body())
        return self._fields

    def decode_body(self) -> JsonObject:
        """A fresh dict, the caller's to change."""
        return decode_json(self.data)

    def _read_labels(self) -> dict[str, str]:
        try:
            return _labelled.decode(self.data).metadata.labels or {}
        except msgspec.DecodeError:
            return self.decode_body()["metadata"].get("labels") or {}

    def forget_fields(self) -> None:
        self._fields = None


def decode_json(data: bytes) -> JsonObject:
    """The object in stored bytes, without numbers that no float holds, such as 1e400: they are unknown.

    No request can store such a number, but a file can hold it: the object must still be read, patched and deleted.
    """
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        found: JsonObject = _remove_unknown(json.loads(data, parse_float=_read_float, parse_int=_read_int))
        return found


def _read_float(written: str) -> Any:
    number = float(written)
    return _UNKNOWN if math.isinf(number) else number


def _read_int(written: str) -> Any:
    return int(written) if len(written) <= _MOST_DIGITS else _read_float(written)


def _remove_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _remove_unknown(member) for name, member in value.items() if member is not _UNKNOWN}
    return [_remove_unknown(item) for item in value if item is not _UNKNOWN] if isinstance(value, list) else value


def _encode(body: JsonObject) -> bytes:
    # msgspec gives back bytes with up to half as much memory behind them; what is kept for long is worth a copy.
    return bytes(memoryview(_encoder.encode(body)))


def compute_encoded_size(body: JsonObject) -> int:
    """The bytes that an object takes in the store."""
    return len(_encoder.encode(body))


def stamp(body: Mapping[str, Any], revision: int) -> JsonObject:
    """A new dict with `revision` in it, for `build_stored`. The caller's stays as it is."""
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(revision)}}


def build_stored(traits: Traits, key: Key, *, body: JsonObject, revision: int) -> Stored:
    """`decode_body`, with `revision` in it, as it is kept: encoded once. Raises `TooLarge`."""
    data = _encode(body)
    if len(data) > LARGEST_OBJECT_BYTES:
        raise TooLarge
    labels = dict(body["metadata"].get("labels") or ())
    fields = traits.fields_of(body) if traits.fields_are_selected else None
    return Stored(traits, key.namespace, key.name, revision, data, labels, fields)


def set_revision(last: Stored, revision: int) -> Stored:
    """The last state of an object with the revision of what ended it, which is what DELETED events carry."""
    before = b'"resourceVersion":"%d"' % last.revision
    if last.data.count(before) == 1:
        # It can only be the one in the metadata: inside of a text the quotes would be escaped.
        data = last.data.replace(before, b'"resourceVersion":"%d"' % revision)
    else:
        body = last.decode_body()
        body["metadata"]["resourceVersion"] = str(revision)
        data = _encode(body)
    return Stored(last.traits, last.namespace, last.name, revision, data, last._labels, last._fields)  # noqa: SLF001 -- its own module
