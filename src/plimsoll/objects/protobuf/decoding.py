"""Decodes protobuf bodies: the envelope, and the conversion of a message to JSON.

A body is `k8s` with a zero byte, and a `runtime.Unknown`, whose `typeMeta` names the kind and whose `raw` is the
message. Unknown field numbers are skipped and reported, like unknown fields of JSON bodies; code that forwards a
message gets them as bytes, which the encoder writes again.
"""

from __future__ import annotations

import base64
import struct
from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.protobuf import wire
from plimsoll.objects.protobuf.messages import RUNTIME, FieldType, find_message, find_message_of_kind
from plimsoll.objects.protobuf.presence import list_significant_zeros
from plimsoll.objects.protobuf.specials import NOTHING, SPECIALS
from plimsoll.objects.protobuf.wire import InvalidProtobuf

MAGIC: Final = b"k8s\0"
_MAX_NESTING: Final = 100
_MOST_UNKNOWN: Final = 100
_LONGEST_PATH: Final = 300
_UNKNOWN: Final = f"{RUNTIME}Unknown"
_ZEROS: Final[dict[str, Any]] = {"string": "", "bytes": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0}
_BITS: Final = {"int32": 32, "int64": 64}


class DecodedBody(Value):
    """The object as if it had been sent as JSON; `unknown_fields` are paths that end in a field number."""

    api_version: str
    kind: str
    value: dict[str, Any]
    unknown_fields: tuple[str, ...] = ()


def decode_body(body: bytes, *, api_version: str = "", kind: str = "") -> DecodedBody:
    """Decode a body. `api_version` and `kind` are from the URL, for bodies without them. Raises `InvalidProtobuf`."""
    if not body.startswith(MAGIC):
        raise InvalidProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _Walk().read_envelope(body[len(MAGIC) :])
    api_version, kind = envelope.api_version or api_version, envelope.kind or kind
    name = find_message_of_kind(api_version, kind)
    if name is None:
        raise InvalidProtobuf(f'no kind "{kind}" is registered for version "{api_version}"')
    walk = _Walk()
    value = walk.read_object(name, envelope.raw, path="", depth=0)
    return DecodedBody(
        api_version=api_version,
        kind=kind,
        value={"apiVersion": api_version, "kind": kind, **value},
        unknown_fields=tuple(walk.unknown),
    )


class DecodedMessage(Value):
    """The message as JSON has it. `unknown` holds unknown fields, as bytes by the path of their message."""

    value: dict[str, Any]
    unknown: dict[str, bytes] = {}


def decode_message(name: str, buffer: bytes) -> DecodedMessage:
    """A message without an envelope, by its full name; raises `InvalidProtobuf`."""
    walk = _Walk()
    value = walk.read_object(name, buffer, path="", depth=0)
    return DecodedMessage(value=value, unknown={path: bytes(kept) for path, kept in walk.kept.items()})


class _Envelope(Value):
    api_version: str
    kind: str
    raw: bytes


class _Walk:
    """The decoding of a body; collects unknown field numbers and their bytes."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.kept: dict[str, bytearray] = {}

    def read_envelope(self, buffer: bytes) -> _Envelope:
        # `raw` must stay bytes here, so the envelope is read by its field numbers: 1 is typeMeta, 2 is raw.
        parts: dict[int, list[bytes]] = {1: [], 2: []}
        for number, wire_type, content in wire.iterate_fields(buffer):
            if number in parts:
                parts[number].append(_require_bytes(content, wire_type, _UNKNOWN))
        type_meta = self.read_object(f"{RUNTIME}TypeMeta", b"".join(parts[1]), path="typeMeta", depth=0)
        return _Envelope(
            api_version=type_meta.get("apiVersion", ""), kind=type_meta.get("kind", ""), raw=b"".join(parts[2])
        )

    def read_object(self, name: str, buffer: bytes, *, path: str, depth: int) -> dict[str, Any]:
        """The JSON object of a message: zeros that JSON leaves out are dropped, inline messages dissolved."""
        kept = list_significant_zeros(name)
        result: dict[str, Any] = {}
        for field, value in self._read_content(name, buffer, path=path, depth=depth):
            if field.is_inline and isinstance(value, dict):
                result |= value
            elif value is not NOTHING and (not _is_zero(field, value) or field.name in kept):
                result[field.name] = value
        return result

    def _read_content(self, name: str, buffer: bytes, *, path: str, depth: int) -> list[tuple[FieldType, Any]]:
        if depth > _MAX_NESTING:
            raise InvalidProtobuf(f"nested deeper than {_MAX_NESTING} messages", path=path)
        types = find_message(name)
        if types is None:
            raise InvalidProtobuf(f"unknown message {name}", path=path)
        single: dict[int, Any] = {}
        for number, wire_type, content in wire.iterate_fields(buffer):
            field = types.get(number)
            if field is None:
                self._report(_append_path(path, f"#{number}"))
                if len(path) < _LONGEST_PATH:
                    self.kept.setdefault(path, bytearray()).extend(wire.write_field(number, wire_type, content))
            else:
                self._collect(single, number, field, wire_type, content, name=name)
        return [
            (
                types[number],
                self._convert_value(types[number], found, path=_append_path(path, types[number].name), depth=depth),
            )
            for number, found in single.items()
        ]

    def _collect(
        self, found: dict[int, Any], number: int, field: FieldType, wire_type: int, content: int | bytes, *, name: str
    ) -> None:
        """A list for repeated fields, the last value for scalars; the parts of a message are concatenated."""
        scalar = field.type in _ZEROS
        if field.is_map:
            found.setdefault(number, []).append(_require_bytes(content, wire_type, field.name))
        elif field.is_repeated:
            items = found.setdefault(number, [])
            if scalar and field.type in {*_BITS, "bool"} and wire_type == wire.LENGTH_DELIMITED:
                assert isinstance(content, bytes)
                items += [
                    _convert_scalar(field, wire.VARINT, packed_varint)
                    for packed_varint in wire.read_packed_varints(content)
                ]
            else:
                items.append(
                    _convert_scalar(field, wire_type, content)
                    if scalar
                    else _require_bytes(content, wire_type, field.name)
                )
        elif scalar:
            found[number] = _convert_scalar(field, wire_type, content)
        else:
            found.setdefault(number, []).append(_require_bytes(content, wire_type, f"{name}.{field.name}"))

    def _convert_value(self, field: FieldType, found: Any, *, path: str, depth: int) -> Any:
        if field.is_map:
            return dict(self._decode_map_entry(field, entry, path=path, depth=depth) for entry in found)
        if field.type in _ZEROS:
            return found
        if field.is_repeated:
            items = [
                self._convert_message(field.type, item, path=f"{path}[{position}]", depth=depth)
                for position, item in enumerate(found)
            ]
            return [None if item is NOTHING else item for item in items]
        return self._convert_message(field.type, b"".join(found), path=path, depth=depth)

    def _convert_message(self, name: str, buffer: bytes, *, path: str, depth: int) -> Any:
        special = SPECIALS.get(name)
        if special is None:
            return self.read_object(name, buffer, path=path, depth=depth + 1)
        content = self._read_content(name, buffer, path=path, depth=depth + 1)
        return special({field.name: value for field, value in content})

    def _decode_map_entry(self, field: FieldType, entry: bytes, *, path: str, depth: int) -> tuple[str, Any]:
        key = ""
        value: Any = _ZEROS.get(field.type, b"")
        as_value = FieldType(name="value", type=field.type)
        for number, wire_type, content in wire.iterate_fields(entry):
            if number == 1:
                key = _require_bytes(content, wire_type, field.name).decode(errors="replace")
            elif number == 2:
                is_scalar = field.type in _ZEROS
                value = (
                    _convert_scalar(as_value, wire_type, content)
                    if is_scalar
                    else _require_bytes(content, wire_type, field.name)
                )
        if field.type in _ZEROS:
            return key, value
        decoded = self._convert_message(field.type, value, path=f"{path}[{key[:100]}]", depth=depth)
        return key, None if decoded is NOTHING else decoded

    def _report(self, path: str) -> None:
        if len(self.unknown) < _MOST_UNKNOWN:
            self.unknown.append(path)


def _append_path(path: str, name: str) -> str:
    """Paths are for messages only: a long one is not made longer, lest a small body cost much."""
    return f"{path}.{name}" if 0 < len(path) < _LONGEST_PATH else path or name


def _is_zero(field: FieldType, value: Any) -> bool:
    if field.is_map or field.is_repeated:
        return not value
    return field.type in _ZEROS and bool(value == _ZEROS[field.type])


def _require_bytes(content: int | bytes, wire_type: int, name: str) -> bytes:
    if wire_type != wire.LENGTH_DELIMITED or not isinstance(content, bytes):
        raise InvalidProtobuf(f"proto: wrong wireType = {wire_type} for field {name}")
    return content


def _convert_scalar(field: FieldType, wire_type: int, content: int | bytes) -> Any:
    """The JSON value; bytes become base64, as JSON has them."""
    if field.type in {"string", "bytes"}:
        raw = _require_bytes(content, wire_type, field.name)
        return raw.decode(errors="replace") if field.type == "string" else base64.b64encode(raw).decode()
    if field.type == "double" and wire_type == wire.FIXED64 and isinstance(content, bytes):
        return _decode_double(content)
    if field.type == "double" or wire_type != wire.VARINT or not isinstance(content, int):
        raise InvalidProtobuf(f"proto: wrong wireType = {wire_type} for field {field.name}")
    return content != 0 if field.type == "bool" else wire.to_signed(content, _BITS[field.type])


def _decode_double(content: bytes) -> float | int:
    number: float = struct.unpack("<d", content)[0]
    if number != number or number in {float("inf"), float("-inf")}:  # noqa: PLR0124 - the test for NaN
        raise InvalidProtobuf("json: unsupported value: a number that is not finite")
    return int(number) if number.is_integer() and abs(number) < 2**63 else number
