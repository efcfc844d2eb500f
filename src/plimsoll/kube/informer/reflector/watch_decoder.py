"""Decodes the chunks of a watch into events: splits them into frames and decodes each frame as far as possible.

A frame is one line of JSON: `{"type": "ADDED", "object": {…}}`. The fast path is one typed parse of the whole frame; a
frame that does not fit (an object with nulls, an undecodable object, a bookmark, an error) is taken apart. Nothing here
raises on what a server sends, except for a frame without end.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.values import Wire
from plimsoll.kube.errors import ApiError, Status, UnreadableAnswer, build_error
from plimsoll.kube.informer.events import V, get_key_tuple
from plimsoll.kube.informer.reflector.type_meta import strip_type_meta, strip_type_meta_with_raw
from plimsoll.kube.requests.status_errors import read_status_error
from plimsoll.objects.api.meta import MicroTime, WireObject
from plimsoll.objects.codec.decode_problems import BadObject, describe_problem
from plimsoll.objects.codec.decoding import RawObject, decode_object, decode_with_raw
from plimsoll.objects.codec.json_spans import index_members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T", bound=WireObject)

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LONGEST_FRAME_BYTES: Final = 256 * 1024 * 1024
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Present(NamedTuple, Generic[V]):
    """ADDED or MODIFIED: the object exists in this state."""

    value: V | BadObject


class WatchDeleted(NamedTuple, Generic[V]):
    """DELETED: the last state of the object."""

    value: V | BadObject


class Bookmark(NamedTuple):
    """There are no further events up to `version`. `ends_initial`: the initial events are complete."""

    version: str
    ends_initial: bool = False


class WatchError(NamedTuple):
    """The server ends the watch with this error."""

    error: ApiError


class UnreadableFrame(NamedTuple):
    """A frame that cannot be decoded: its event is unknown."""

    problem: str


class FrameSplitter:
    """Joins chunks and splits them at line ends. There is one per connection; the rest of a broken one is dropped."""

    def __init__(self, *, longest_bytes: int = _LONGEST_FRAME_BYTES) -> None:
        self._longest_bytes = longest_bytes
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the frames that `chunk` completes. Raises `UnreadableAnswer` if a frame exceeds the limit."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            # Joined once, when the frame is complete: a frame of megabytes arrives in a thousand chunks.
            complete[0] = b"".join((*self._begun, complete[0]))
            self._begun, self._begun_bytes = [], 0
        if rest:
            self._begun.append(rest)
            self._begun_bytes += len(rest)
            if self._begun_bytes > self._longest_bytes:
                raise UnreadableAnswer(f"a watch event of more than {self._longest_bytes} bytes")
        return [frame for frame in complete if frame and not frame.isspace()]


class _Frame(Wire, Generic[T]):
    type: str = ""
    object: T | None = None


class _RawFrame(Wire):
    type: str = ""
    object: Raw = Raw(b"null")


class _Metadata(Wire):
    resource_version: str | None = None
    annotations: dict[str, str] | None = None


class _BookmarkObject(Wire):
    """The object of a bookmark. Only its metadata matters; the rest is empty, with nulls in place of lists."""

    metadata: _Metadata | None = None


class FrameReader(Generic[V]):
    """Decodes the frames of one kind. With `keep_raw`, objects come with their bytes."""

    def __init__(self, struct: type[WireObject], *, keep_raw: bool = False) -> None:
        self._struct = struct
        self._kinds = ("", struct.get_kind_name())
        self._fast = None if keep_raw else _build_frame_decoder(struct)
        self._decode = get_item_decoder(keep_raw=keep_raw)

    def read(self, frame: bytes) -> Present[V] | WatchDeleted[V] | Bookmark | WatchError | UnreadableFrame:
        if self._fast is not None:
            try:
                event = self._fast.decode(frame)
            except _UNREADABLE:
                return self._decode_slowly(frame)
            value: Any = event.object
            if value is not None and value.kind in self._kinds and value.metadata.name:
                if event.type in ("ADDED", "MODIFIED"):
                    return Present(strip_type_meta(value))
                if event.type == "DELETED":
                    return WatchDeleted(strip_type_meta(value))
            if event.type == "BOOKMARK" and value is not None:
                return _build_bookmark(value.metadata.resource_version, value.metadata.annotations)
        return self._decode_slowly(frame)

    def _decode_slowly(self, frame: bytes) -> Present[V] | WatchDeleted[V] | Bookmark | WatchError | UnreadableFrame:
        try:
            event = msgspec.json.decode(frame, type=_RawFrame)
        except RecursionError as error:
            # The object is nested too deeply, but its name can be read.
            parts = index_members(frame)
            kind = parts.get("type", b"").strip(b'"').decode(errors="replace")
            if "object" not in parts:
                return UnreadableFrame(describe_problem(error))
            event = _RawFrame(type=kind, object=Raw(parts["object"]))
        except _UNREADABLE as error:
            return UnreadableFrame(describe_problem(error))
        match event.type:
            case "ADDED" | "MODIFIED":
                return self._decode_object_event(event, Present)
            case "DELETED":
                return self._decode_object_event(event, WatchDeleted)
            case "BOOKMARK":
                return _decode_bookmark(event.object)
            case "ERROR":
                return _decode_error(event.object)
            case unknown:
                return UnreadableFrame(f"type: unknown kind of event {unknown[:64]!r}")

    def _decode_object_event(
        self, event: _RawFrame, kind: type[Present[V] | WatchDeleted[V]]
    ) -> Present[V] | WatchDeleted[V] | UnreadableFrame:
        value = self._decode(self._struct, event.object)
        if not get_key_tuple(value)[1]:
            return UnreadableFrame(value.problem if isinstance(value, BadObject) else "metadata.name: missing")
        return kind(value)


def _decode_bookmark(data: Raw) -> Bookmark | UnreadableFrame:
    try:
        marked = msgspec.json.decode(data, type=_BookmarkObject)
    except _UNREADABLE as error:
        return UnreadableFrame(f"bookmark: {describe_problem(error)}")
    metadata = marked.metadata or _Metadata()
    return _build_bookmark(metadata.resource_version or "", metadata.annotations or {})


def _build_bookmark(version: str, annotations: Mapping[str, str]) -> Bookmark:
    return Bookmark(version, ends_initial=annotations.get(INITIAL_EVENTS_END) == "true")


def _decode_error(data: Raw) -> WatchError:
    error = read_status_error(bytes(data))
    if error is None:
        # As in client-go, an error without a Status counts as an internal error of the server.
        message = "the watch ended with an error that is no Status"
        error = build_error(Status(kind="Status", status="Failure", code=500, reason="InternalError", message=message))
    return WatchError(error)


def decode_special_type(kind: type[Any], value: Any) -> Any:
    """The decode hook of msgspec for `MicroTime`, the only type that it does not know."""
    if kind is MicroTime and isinstance(value, str):
        return MicroTime.parse(value)
    # An error that msgspec turns into its own, so that the slow path decodes the object.
    raise ValueError(f"cannot read {kind.__name__}")


def get_item_decoder(*, keep_raw: bool) -> Callable[[type[WireObject], bytes | Raw], Any]:
    """The function that decodes one object slowly but tolerantly, and strips its type metadata."""
    return _decode_with_raw if keep_raw else _decode_view


def _decode_with_raw(struct: type[WireObject], data: bytes | Raw) -> RawObject[Any] | BadObject:
    return strip_type_meta_with_raw(decode_with_raw(struct, data))


def _decode_view(struct: type[WireObject], data: bytes | Raw) -> WireObject | BadObject:
    decoded = decode_object(struct, data)
    return decoded if isinstance(decoded, BadObject) else strip_type_meta(decoded)


@cache
def _build_frame_decoder(struct: type[T]) -> msgspec.json.Decoder[_Frame[T]]:
    return msgspec.json.Decoder(_Frame[struct], dec_hook=decode_special_type)  # type: ignore[valid-type] # made at run time


@cache
def build_items_decoder(struct: type[T]) -> msgspec.json.Decoder[tuple[T, ...]]:
    """The decoder of an array of objects in one parse, with the exceptions of msgspec."""
    return msgspec.json.Decoder(tuple[struct, ...], dec_hook=decode_special_type)  # type: ignore[valid-type] # made at run time
