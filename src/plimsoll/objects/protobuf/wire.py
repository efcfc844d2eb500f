"""The protobuf wire format: reads and writes a buffer as a sequence of numbered fields.

Every length is checked against the remaining bytes before use, so hostile input costs no more than its own size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT: Final = 0
FIXED64: Final = 1
LENGTH_DELIMITED: Final = 2
FIXED32: Final = 5

_LONGEST_VARINT: Final = 10
_MASK_64: Final = (1 << 64) - 1


class InvalidProtobuf(InvalidInput):
    """A body that is not the protobuf it claims to be; `problem` is worded as Go's decoder words it."""


# A field's number, its wire type, and what it holds: an unsigned number, or the bytes.
Field = tuple[int, int, int | bytes]


def iterate_fields(buffer: bytes) -> Iterator[Field]:
    position = 0
    end = len(buffer)
    while position < end:
        tag, position = _read_varint(buffer, position)
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or number > 0x1FFFFFFF:
            raise InvalidProtobuf(f"proto: illegal tag {number} (wire type {wire_type})")
        if wire_type == VARINT:
            value, position = _read_varint(buffer, position)
            yield number, wire_type, value
            continue
        length, position = _read_length(buffer, position, wire_type)
        if position + length > end:
            raise InvalidProtobuf("unexpected EOF")
        yield number, wire_type, buffer[position : position + length]
        position += length


def _read_length(buffer: bytes, position: int, wire_type: int) -> tuple[int, int]:
    if wire_type == LENGTH_DELIMITED:
        return _read_varint(buffer, position)
    if wire_type == FIXED64:
        return 8, position
    if wire_type == FIXED32:
        return 4, position
    # Groups (3 and 4) are older than Kubernetes and never used by it.
    raise InvalidProtobuf(f"proto: illegal wireType {wire_type}")


def _read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for index in range(position, min(position + _LONGEST_VARINT, len(buffer))):
        byte = buffer[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK_64, index + 1
        shift += 7
    raise InvalidProtobuf("unexpected EOF" if position + _LONGEST_VARINT > len(buffer) else "proto: integer overflow")


def read_packed_varints(buffer: bytes) -> Iterator[int]:
    position = 0
    while position < len(buffer):
        value, position = _read_varint(buffer, position)
        yield value


def write_varint(value: int) -> bytes:
    """Negative numbers take all ten bytes, as protobuf has it."""
    value &= _MASK_64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_field(number: int, wire_type: int, content: int | bytes) -> bytes:
    """A field as `iterate_fields` reads it."""
    tag = write_varint(number << 3 | wire_type)
    if isinstance(content, int):
        return tag + write_varint(content)
    return tag + (write_varint(len(content)) if wire_type == LENGTH_DELIMITED else b"") + content


def to_signed(value: int, bits: int) -> int:
    """The two's complement number in the lowest `bits`."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
