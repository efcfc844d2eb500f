"""Encodes JSON values as protobuf messages: the inverse of `decoding`, with the same table.

The provider and expander protocols of Cluster Autoscaler have nodes and pods in their messages. JSON names that are
not in the table are omitted. Fields are written in the order of their numbers and maps by key, so that equal values
have equal bytes.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.objects.api.meta import Time
from plimsoll.objects.protobuf.messages import META, RUNTIME, find_message
from plimsoll.objects.protobuf.wire import FIXED64, LENGTH_DELIMITED, VARINT, InvalidProtobuf, write_field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.objects.protobuf.messages import FieldType

_MAX_NESTING: Final = 100
_NUMBERS: Final = {"int32": 32, "int64": 64}


def encode_message(name: str, value: Mapping[str, Any], *, unknown: Mapping[str, bytes] | None = None) -> bytes:
    """Encode a message by its full name. `unknown` are fields from `decode_message`. Raises `InvalidProtobuf`."""
    return _Writing(unknown or {}).write_message(name, value, path="", depth=0)


class _Writing:
    def __init__(self, unknown: Mapping[str, bytes]) -> None:
        self._unknown = unknown

    def write_message(self, name: str, value: Any, *, path: str, depth: int) -> bytes:
        special = _SPECIALS.get(name)
        if special is not None:
            return special(value, path)
        types = find_message(name)
        if types is None:
            raise InvalidProtobuf(f"unknown message {name}", path=path)
        if depth > _MAX_NESTING:
            raise InvalidProtobuf(f"nested deeper than {_MAX_NESTING} messages", path=path)
        if not hasattr(value, "get"):
            raise InvalidProtobuf(f"is not an object but {type(value).__name__}", path=path)
        out = bytearray()
        for number in sorted(types):
            field = types[number]
            # Fields that are inline in JSON are a message of their own here, with the same names.
            found = _select_inline_part(field, value) if field.is_inline else value.get(field.name)
            if found is not None:
                out += self._encode_field(number, field, found, path=path, depth=depth)
        return bytes(out) + self._unknown.get(path, b"")

    def _encode_field(self, number: int, field: FieldType, found: Any, *, path: str, depth: int) -> bytes:
        below = f"{path}.{field.name}" if path else field.name
        if field.is_map:
            _expect(found, dict, below)
            entries = (self._encode_entry(field, key, found[key], path=below, depth=depth) for key in sorted(found))
            return b"".join(write_field(number, LENGTH_DELIMITED, entry) for entry in entries)
        if not field.is_repeated:
            return self._encode_single(number, field, found, path=below, depth=depth)
        _expect(found, list, below)
        items = enumerate(found)
        return b"".join(
            self._encode_single(number, field, item, path=f"{below}[{at}]", depth=depth) for at, item in items
        )

    def _encode_single(self, number: int, field: FieldType, found: Any, *, path: str, depth: int) -> bytes:
        scalar = _SCALARS.get(field.type)
        if scalar is not None:
            wire_type, written = scalar
            return write_field(number, wire_type, written(found, path))
        content = b"" if found is None else self.write_message(field.type, found, path=path, depth=depth + 1)
        return write_field(number, LENGTH_DELIMITED, content)

    def _encode_entry(self, field: FieldType, key: str, found: Any, *, path: str, depth: int) -> bytes:
        return write_field(1, LENGTH_DELIMITED, key.encode()) + self._encode_single(
            2, field, found, path=f"{path}[{key[:100]}]", depth=depth
        )


def _select_inline_part(field: FieldType, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of the value that belongs to the inline message; None if there is none."""
    names = {field_type.name for field_type in (find_message(field.type) or {}).values()}
    return {name: found for name, found in value.items() if name in names} or None


# ---- scalars


def _encode_text(value: Any, path: str) -> bytes:
    return str(_expect(value, str, path)).encode()


def _encode_bytes(value: Any, path: str) -> bytes:
    try:
        return base64.b64decode(_expect(value, str, path), validate=True)
    except binascii.Error as error:
        raise InvalidProtobuf(f"is not base64: {error}", path=path) from None


def _encode_flag(value: Any, path: str) -> int:
    return int(_expect(value, bool, path))


def _encode_integer(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise InvalidProtobuf(f"is not an integer but {value!r}", path=path)
    return value


def _encode_double(value: Any, path: str) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidProtobuf(f"is not a number but {value!r}", path=path)
    return struct.pack("<d", value)


_SCALARS: Final[dict[str, tuple[int, Callable[[Any, str], int | bytes]]]] = {
    "string": (LENGTH_DELIMITED, _encode_text),
    "bytes": (LENGTH_DELIMITED, _encode_bytes),
    "bool": (VARINT, _encode_flag),
    "int32": (VARINT, _encode_integer),
    "int64": (VARINT, _encode_integer),
    "double": (FIXED64, _encode_double),
}


# ---- messages that are not objects in JSON


def _encode_quantity(value: Any, path: str) -> bytes:
    """Encode a quantity as a string, its only form in protobuf; files have `cpu: 1`."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidProtobuf(f"is not a quantity but {value!r}", path=path)
    return write_field(1, LENGTH_DELIMITED, str(value).encode())


def _encode_int_or_string(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        return write_field(1, VARINT, 1) + write_field(3, LENGTH_DELIMITED, value.encode())
    return write_field(1, VARINT, 0) + write_field(2, VARINT, _encode_integer(value, path))


def _encode_time(value: Any, path: str) -> bytes:
    try:
        moment = msgspec.convert(value, Time)
    except msgspec.ValidationError as error:
        raise InvalidProtobuf(f"is not a time: {error}", path=path) from None
    seconds = write_field(1, VARINT, int(moment.timestamp() // 1))
    return seconds + (write_field(2, VARINT, moment.microsecond * 1000) if moment.microsecond else b"")


def _encode_embedded_json(value: Any, _path: str) -> bytes:
    return write_field(1, LENGTH_DELIMITED, msgspec.json.encode(value))


_SPECIALS: Final[dict[str, Callable[[Any, str], bytes]]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _encode_quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _encode_int_or_string,
    f"{META}Time": _encode_time,
    f"{META}MicroTime": _encode_time,
    f"{META}FieldsV1": _encode_embedded_json,
    f"{RUNTIME}RawExtension": _encode_embedded_json,
}


def _expect(value: Any, kind: type, path: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidProtobuf(f"is not {kind.__name__} but {type(value).__name__}", path=path)
    return value
