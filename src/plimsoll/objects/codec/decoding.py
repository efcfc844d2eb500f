"""Decodes bytes to wire structs, whatever the bytes are, and encodes structs.

Everything that reads the Kubernetes API or a file of objects uses it. Three rules hold:

* Null equals absent, for every field and every map value. (Not for elements of a list: there it is a bad object.)
* Nothing raises. An undecodable object is a `BadObject` with the invalid field, and with the identity of the object as
  far as it can be read: it exists in the cluster and must count as present and unmovable.
* A bad object does not make its list unreadable.

The fast path is one typed decode in C. Only after a failure the data is decoded generically, nulls are dropped, and
the rest converted; a list falls back to the same thing object by object.
"""

from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.values import Value, Wire
from plimsoll.objects.api.meta import ListMeta, MicroTime, ObjectMeta, WireObject
from plimsoll.objects.codec.decode_problems import BadObject, Unreadable, describe_problem, get_json_type
from plimsoll.objects.codec.json_spans import index_members, split_members
from plimsoll.objects.codec.nulls import Shape, strip_nulls
from plimsoll.objects.codec.unknown_fields import (
    DEGRADING_KINDS,
    MOST_UNKNOWN,
    decode_numbers_out_of_range,
    remove_unknown,
)

T = TypeVar("T", bound=WireObject)
S = TypeVar("S", bound=Wire)

_WHO: Final = ("metadata", "spec")
# All exceptions that msgspec raises for invalid data.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class RawObject(Value, Generic[T]):
    """A partial struct and the bytes that it was decoded from, for kinds whose objects are copied without loss."""

    view: T
    raw: bytes

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata of the view, so that callers can treat objects with and without raw bytes alike."""
        return self.view.metadata

    def __repr__(self) -> str:
        """Omits the bytes, which may be a Secret's."""
        return f"RawObject({self.view!r}, {len(self.raw)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("view", self.view), ("raw", f"{len(self.raw)} bytes")]


class DecodedList(Value, Generic[T]):
    """The decodable and the bad objects of a list.

    `problem` is set if the list itself is unreadable. Then missing objects mean nothing: an empty
    `items` beside a `problem` does not mean that there are no objects.
    """

    items: tuple[T, ...] = ()
    bad: tuple[BadObject, ...] = ()
    metadata: ListMeta = ListMeta()
    problem: str = ""


def decode_object(struct: type[T], data: bytes | Raw) -> T | BadObject:
    """The object, or what is wrong with it."""
    decoded = _decode(struct, data)
    if isinstance(decoded, Unreadable):
        return _build_bad_object(struct, decoded.problem, data)
    if decoded.kind not in ("", struct.get_kind_name()):
        return _build_bad_object(struct, _check_kind(struct, decoded.kind), data)
    return decoded


def convert_object(struct: type[T], value: Any) -> T | BadObject:
    """Decode a parsed object, such as a document of a YAML file."""
    converted = _convert(struct, value)
    if isinstance(converted, Unreadable):
        return BadObject.from_json(value, kind=struct.get_kind_name(), problem=converted.problem)
    if converted.kind not in ("", struct.get_kind_name()):
        return BadObject.from_json(value, kind=struct.get_kind_name(), problem=_check_kind(struct, converted.kind))
    return converted


def decode_with_raw(struct: type[T], data: bytes | Raw) -> RawObject[T] | BadObject:
    """The object with its bytes. They are copied: a view into a list would keep the whole list in memory."""
    decoded = decode_object(struct, data)
    return decoded if isinstance(decoded, BadObject) else RawObject(view=decoded, raw=bytes(data))


def decode_list(struct: type[T], data: bytes) -> DecodedList[T]:
    """A list as a server answers it. An answer that is not a list (a Status, say) is a problem, not an empty list."""
    try:
        fast = _build_list_decoder(struct).decode(data)
    except _UNREADABLE:
        return _decode_one_by_one(struct, data)
    problem = _check_list_kind(struct, fast.kind or "", has_items=fast.items is not None)
    if problem:
        return DecodedList(problem=problem)
    items = fast.items or ()
    if any(item.kind not in ("", struct.get_kind_name()) for item in items):
        return _decode_one_by_one(struct, data)
    return DecodedList(items=items, metadata=fast.metadata or ListMeta())


def decode_list_with_raw(struct: type[T], data: bytes) -> tuple[DecodedList[T], tuple[bytes, ...]]:
    """The list, and the bytes of each of its readable items in the same order."""
    envelope = _open_envelope(struct, data)
    if isinstance(envelope, Unreadable):
        return DecodedList(problem=envelope.problem), ()
    decoded = [decode_with_raw(struct, item) for item in envelope.items]
    good = [item for item in decoded if isinstance(item, RawObject)]
    bad = tuple(item for item in decoded if isinstance(item, BadObject))
    listed = envelope.wrap(tuple(raw.view for raw in good), bad)
    return listed, tuple(raw.raw for raw in good)


def encode_object(value: Wire) -> bytes:
    """Encode the fields of the struct as JSON, without defaults. Fields that the struct does not declare are lost."""
    return _ENCODER.encode(value)


class _TypedList(Wire, Generic[T]):
    """The type of the fast path for lists. Only here does a type allow null, because lists are hot."""

    kind: str | None = None
    metadata: ListMeta | None = None
    items: tuple[T, ...] | None = None


class _RawList(Wire):
    """The list with undecoded members."""

    kind: Raw = Raw(b"null")
    metadata: Raw = Raw(b"null")
    items: Raw = Raw(b"null")


class _Envelope(Value):
    """A list with its items as bytes and its own fields decoded."""

    items: tuple[Raw, ...]
    metadata: ListMeta
    problem: str

    def wrap(self, items: tuple[T, ...], bad: tuple[BadObject, ...]) -> DecodedList[T]:
        return DecodedList(items=items, bad=bad, metadata=self.metadata, problem=self.problem)


def _decode_one_by_one(struct: type[T], data: bytes) -> DecodedList[T]:
    envelope = _open_envelope(struct, data)
    if isinstance(envelope, Unreadable):
        return DecodedList(problem=envelope.problem)
    decoded = [decode_object(struct, item) for item in envelope.items]
    good = tuple(item for item in decoded if not isinstance(item, BadObject))
    bad = tuple(item for item in decoded if isinstance(item, BadObject))
    return envelope.wrap(good, bad)


def _open_envelope(struct: type[WireObject], data: bytes) -> _Envelope | Unreadable:
    outer = _decode_outer(data)
    if isinstance(outer, Unreadable):
        return outer
    try:
        kind = msgspec.json.decode(outer.kind, type=str | None) or ""
    except _UNREADABLE as error:
        return Unreadable(problem=f"kind: {describe_problem(error)}")
    try:
        items = msgspec.json.decode(outer.items, type=tuple[Raw, ...] | None)
    except RecursionError:
        # One item is nested too deeply; the others are still to be had.
        items = tuple(Raw(value) for _, value in split_members(bytes(outer.items)))
    except _UNREADABLE as error:
        return Unreadable(problem=f"items: {describe_problem(error)}")
    problem = _check_list_kind(struct, kind, has_items=items is not None)
    return Unreadable(problem=problem) if problem else _build_envelope(outer.metadata, items)


def _decode_outer(data: bytes) -> _RawList | Unreadable:
    try:
        return msgspec.json.decode(data, type=_RawList)
    except RecursionError as error:
        parts = index_members(data)
        # Text that breaks off would look like an empty list.
        if "items" not in parts or not data.rstrip().endswith(b"}"):
            return Unreadable(problem=describe_problem(error))
        return _RawList(**{name: Raw(parts[name]) for name in _RawList.__struct_fields__ if name in parts})
    except _UNREADABLE as error:
        return Unreadable(problem=describe_problem(error))


def _build_envelope(metadata: Raw, items: tuple[Raw, ...] | None) -> _Envelope:
    listed = _decode(ListMeta, metadata) if bytes(metadata) != b"null" else ListMeta()
    if isinstance(listed, Unreadable):
        return _Envelope(items=items or (), metadata=ListMeta(), problem=f"metadata.{listed.problem}")
    return _Envelope(items=items or (), metadata=listed, problem="")


def _check_list_kind(struct: type[WireObject], kind: str, *, has_items: bool) -> str:
    """Whether a list holds the expected kind. A dump of several kinds is a `List`."""
    if kind not in {"", "List", f"{struct.get_kind_name()}List"}:
        return f"kind: expected {struct.get_kind_name()}List, got {kind[:64]}"
    return "" if kind or has_items else "items: expected a list, got none"


def _check_kind(struct: type[WireObject], kind: str) -> str:
    return f"kind: expected {struct.get_kind_name()}, got {kind[:64]}"


def _decode(struct: type[S], data: bytes | Raw) -> S | Unreadable:
    try:
        fast: S = _get_decoder(struct).decode(data)
    except _UNREADABLE as error:
        problem = describe_problem(error)
    else:
        return fast
    try:
        value = msgspec.json.decode(data)
    except _UNREADABLE as error:
        value = decode_numbers_out_of_range(bytes(data), error) if _may_degrade(struct) else None
        if value is None:
            return Unreadable(problem=problem)
    return _convert(struct, value)


def _convert(struct: type[S], value: Any) -> S | Unreadable:
    present = strip_nulls(value, _get_shape(struct))
    may_degrade = _may_degrade(struct)
    unknown: list[str] = []
    for attempt in range(MOST_UNKNOWN + 1):
        try:
            converted: S = msgspec.convert(present, struct, dec_hook=_from_wire)
        except _UNREADABLE as error:
            rest = remove_unknown(present, error) if may_degrade and attempt < MOST_UNKNOWN else None
            if rest is None:
                return Unreadable(problem=describe_problem(error, value=present))
            present = rest.value
            unknown += rest.unknown
        else:
            return _name_unknown_fields(converted, unknown) if unknown else converted
    raise AssertionError("the last attempt returns")


def _may_degrade(struct: type[Wire]) -> bool:
    return issubclass(struct, WireObject) and struct.get_kind_name() in DEGRADING_KINDS


def _name_unknown_fields(decoded: S, unknown: list[str]) -> S:
    assert isinstance(decoded, WireObject), "only nodes and pods degrade"
    metadata = msgspec.structs.replace(decoded.metadata, unknown_fields=tuple(unknown))
    return msgspec.structs.replace(decoded, metadata=metadata)


def _build_bad_object(struct: type[WireObject], problem: str, data: bytes | Raw) -> BadObject:
    """The identity of an object, from text that may not even be JSON."""
    parts = index_members(bytes(data))
    identity = {
        name: {key: _decode_text(part) for key, part in index_members(parts.get(name, b"")).items()} for name in _WHO
    }
    return BadObject.from_json(identity, kind=struct.get_kind_name(), problem=problem)


def _decode_text(json: bytes) -> str:
    try:
        return msgspec.json.decode(json, type=str)
    except _UNREADABLE:
        return ""


def _from_wire(kind: type[Any], value: Any) -> Any:
    if kind is not MicroTime:
        raise NotImplementedError(kind)
    if isinstance(value, str):
        return MicroTime.parse(value)
    raise ValueError(f"Expected `datetime`, got `{get_json_type(value)}`")


def _to_wire(value: Any) -> Any:
    if isinstance(value, MicroTime):
        return value.to_text()
    raise NotImplementedError(type(value))


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_to_wire)


@cache
def _get_decoder(struct: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(struct, dec_hook=_from_wire)


@cache
def _build_list_decoder(struct: type[T]) -> msgspec.json.Decoder[_TypedList[T]]:
    return msgspec.json.Decoder(_TypedList[struct], dec_hook=_from_wire)  # type: ignore[valid-type] # a type made at run time


@cache
def _get_shape(struct: type[Wire]) -> Shape:
    return msgspec.inspect.type_info(struct)
