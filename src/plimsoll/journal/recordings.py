"""A recorded snapshot: the input of a plan, so that the plan can be made again elsewhere, byte for byte. Pure.

A recording is a container: a head, and parts by name (`snapshot`, `policy`, `plan`) that its subsystem encodes as plain
JSON. `record` hides names by default (`anonymising`); an anonymised recording therefore holds the plan made from the
anonymised snapshot, because names decide ties. The same content gives the same bytes.
"""

from __future__ import annotations

import gzip
import zlib
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from plimsoll.core.plans import encode
from plimsoll.core.values import Value
from plimsoll.journal.errors import RecordingTooNew, UnreadableRecording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.journal.anonymising import Anonymiser

FORMAT: Final = "plimsoll-recording"
VERSION: Final = 1
_LARGEST_BYTES: Final = 2 * 1024**3
_CHUNK: Final = 1024 * 1024


class About(Value):
    """`plimsoll` is the version of the program that wrote it: another one may plan otherwise."""

    subsystem: str
    made_at: datetime
    plimsoll: str


class Recording(About):
    """A container of parts by name."""

    anonymised: bool
    parts: dict[str, Any]

    @classmethod
    def from_parts(cls, parts: Mapping[str, Any], about: About, anonymiser: Anonymiser | None) -> Recording:
        """Parts as plain JSON; None as anonymiser only where a person asked to keep names."""
        hidden = {name: part if anonymiser is None else anonymiser.anonymise(part) for name, part in parts.items()}
        return cls(
            subsystem=about.subsystem,
            made_at=about.made_at,
            plimsoll=about.plimsoll,
            anonymised=anonymiser is not None,
            parts=hidden,
        )

    def with_part(self, name: str, value: Any) -> Recording:
        """A copy with a part that follows from the present parts, such as the plan of an anonymised snapshot."""
        return structs.replace(self, parts={**self.parts, name: value})

    def get_part(self, name: str) -> Any:
        try:
            return self.parts[name]
        except KeyError:
            held = ", ".join(sorted(self.parts)) or "nothing"
            raise UnreadableRecording(f"the recording has no {name}; it holds {held}", path=name) from None


class _Head(Value):
    """The head, which is read first, from any bytes."""

    format: str = ""
    version: int = 0


class _Container(Value):
    format: str
    version: int
    recording: Recording


_HEAD: Final = msgspec.json.Decoder(_Head)
_CONTAINER: Final = msgspec.json.Decoder(_Container)


def write_recording(recording: Recording) -> bytes:
    # Without the time that gzip would write into its head.
    return gzip.compress(encode(_Container(format=FORMAT, version=VERSION, recording=recording)), mtime=0)


def read_recording(data: bytes) -> Recording:
    text = _decompress(data)
    try:
        head = _HEAD.decode(text)
        if head.format != FORMAT:
            raise UnreadableRecording("not a recording of Plimsoll")
        if head.version > VERSION:
            raise RecordingTooNew(f"the recording has version {head.version}, this Plimsoll reads up to {VERSION}")
        return _CONTAINER.decode(text).recording
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableRecording(f"not a recording of Plimsoll: {error}") from error


def _decompress(data: bytes) -> bytes:
    """Piece by piece: a small file may claim to hold more than the machine has."""
    unpacker = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    size, rest = 0, data
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
            if not piece and not rest:
                break
            size += len(piece)
            if size > _LARGEST_BYTES:
                raise UnreadableRecording(f"the recording unpacks to more than {_LARGEST_BYTES} bytes")
            pieces.append(piece)
    except zlib.error as error:
        raise UnreadableRecording(f"not a recording of Plimsoll, or damaged: {error}") from error
    if not unpacker.eof:
        raise UnreadableRecording("the recording ends in the middle")
    return b"".join(pieces)
