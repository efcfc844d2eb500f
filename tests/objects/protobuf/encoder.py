"""Just enough of a protobuf encoder to make bodies for tests."""

from __future__ import annotations

from typing import Any

from plimsoll.objects.protobuf.decoding import MAGIC
from plimsoll.objects.protobuf.messages import find_message


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, type_meta) + field(2, raw)


def encoded(name: str, value: dict[str, Any]) -> bytes:
    """A message from its JSON names; only plain messages, texts, numbers, flags, lists and maps of texts."""
    types = find_message(name)
    assert types is not None
    numbers = {field_type.name: number for number, field_type in types.items()}
    out = b""
    for key, item in value.items():
        one = types[numbers[key]]
        if one.is_map:
            parts: list[Any] = [field(1, k.encode()) + field(2, v.encode()) for k, v in item.items()]
        else:
            parts = item if one.is_repeated else [item]
        for part in parts:
            out += field(numbers[key], _content(one.type, part))
    return out


def _content(type_: str, value: Any) -> bytes | int:
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        return encoded(type_, value)
    return value.encode() if isinstance(value, str) else int(value)
