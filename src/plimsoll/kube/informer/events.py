"""The changes that handlers receive, and how they follow from two states of an object.

For every object a handler receives a history without gaps: `Added`, any number of `Updated`, `Deleted`; `Updated.old`
is the state it received last. An object of another uid under the same name is a `Deleted` and an `Added`.

An object that exists but cannot be decoded is neither added nor deleted: it is `BecameUnreadable` (whether or not it
was decodable before), then `Added` when it can be decoded again, or `UnreadableDeleted` when it is deleted. Handlers
that ignore these two kinds of change miss nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from plimsoll.core.values import Value
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject

if TYPE_CHECKING:
    from typing import Any

    from plimsoll.objects.api.meta import WireObject

V = TypeVar("V", bound="WireObject | RawObject[Any]")

# Types are compared, not asked for by `isinstance`, in what is done for every event and handler: with the metaclass of
# our structs that takes four times as long, and none of the types meant has subclasses.


class Key(NamedTuple):
    """What an object is found by. The namespace is empty where the kind has none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# The same inside the informer. A `Key` equals it and may be given for it, but the garbage collector never lets go of
# named tuples, and walks a hundred thousand of them again and again; plain ones of texts it forgets.
KeyTuple: TypeAlias = tuple[str, str]


class Added(Value, Generic[V]):
    """An object the handler did not know, or could not be told of because nobody could read it."""

    new: V

    @property
    def key(self) -> Key:
        return key_of(self.new)


class Updated(Value, Generic[V]):
    """`old` is what the handler was told last; versions between the two may have been passed over."""

    old: V
    new: V

    @property
    def key(self) -> Key:
        return key_of(self.new)


class Deleted(Value, Generic[V]):
    """`last` is the last known state, which may be newer than what the handler was told.

    `is_inferred`: nobody saw it go; it was missing when all objects were listed again, or another had taken its name.
    """

    last: V
    is_inferred: bool = False

    @property
    def key(self) -> Key:
        return key_of(self.last)


class BecameUnreadable(Value, Generic[V]):
    """The object is there and cannot be read. `last` is what the handler knew of it, if anything."""

    bad: BadObject
    last: V | None = None

    @property
    def key(self) -> Key:
        return Key(self.bad.namespace, self.bad.name)


class UnreadableDeleted(Value):
    """An object that could not be read is no more."""

    bad: BadObject

    @property
    def key(self) -> Key:
        return Key(self.bad.namespace, self.bad.name)


Change: TypeAlias = Added[V] | Updated[V] | Deleted[V] | BecameUnreadable[V] | UnreadableDeleted


class Deletion(NamedTuple, Generic[V]):
    """How an object left: the state it was in, and whether that was seen or only follows."""

    last: V | BadObject | None
    is_inferred: bool


def changes_between(
    before: V | BadObject | None, after: V | BadObject | None, deletion: Deletion[V] | None = None
) -> tuple[Change[V], ...]:
    """What a handler that was told of `before` must hear now that there is `after`; None is an object not there."""
    if before is None:
        return () if after is None else (_build_added(after),)
    if after is None:
        return (_build_deleted(before, deletion),)
    if type(before) is not BadObject and type(after) is not BadObject and _is_next_version(before, after):
        return (Updated(old=before, new=after),)
    if is_other_object(before, after):
        return (_build_deleted(before, deletion), _build_added(after))
    if is_unchanged(before, after):
        return ()
    if type(before) is BadObject:
        return (_build_added(after),)
    if type(after) is BadObject:
        return (BecameUnreadable(bad=after, last=before),)
    return (Updated(old=before, new=after),)


def _is_next_version(before: V, after: V) -> bool:
    """Whether it is what nearly every change is: another version of one object."""
    old, new = before.metadata, after.metadata
    return old.uid == new.uid and old.resource_version != new.resource_version


def is_unchanged(old: V | BadObject, new: V | BadObject) -> bool:
    """Whether it is the same state of the same object.

    The version alone does not say so: a server that was restored from a backup gives versions a second time, and a
    custom kind whose schema got a default has new content in an old version. That list and watch give equal states for
    equal objects is seen to by `type_marks`.
    """
    version = version_of(old)
    return bool(version) and version == version_of(new) and not is_other_object(old, new) and old == new


def is_other_object(value: V | BadObject, other: V | BadObject) -> bool:
    """Whether they are known to be two objects, of one name perhaps."""
    uid = value.uid if type(value) is BadObject else value.metadata.uid
    other_uid = other.uid if type(other) is BadObject else other.metadata.uid
    return uid != other_uid and bool(uid and other_uid)


def _build_added(after: V | BadObject) -> Added[V] | BecameUnreadable[V]:
    return BecameUnreadable(bad=after) if type(after) is BadObject else Added(new=after)


def _build_deleted(before: V | BadObject, deletion: Deletion[V] | None) -> Deleted[V] | UnreadableDeleted:
    if type(before) is BadObject:
        return UnreadableDeleted(bad=before)
    if deletion is None:
        return Deleted(last=before, is_inferred=True)
    last = deletion.last
    if last is None or type(last) is BadObject or is_other_object(last, before):
        last = before
    return Deleted(last=last, is_inferred=deletion.is_inferred)


def view_of(value: V) -> WireObject:
    """The struct, whether or not its bytes are kept with it."""
    return value.view if isinstance(value, RawObject) else value


def key_of(value: V | BadObject) -> Key:
    if type(value) is BadObject:
        return Key(value.namespace, value.name)
    metadata = value.metadata
    return Key(metadata.namespace, metadata.name)


def key_tuple_of(value: V | BadObject) -> KeyTuple:
    if type(value) is BadObject:
        return (value.namespace, value.name)
    metadata = value.metadata
    return (metadata.namespace, metadata.name)


def version_of(value: V | BadObject) -> str:
    return value.resource_version if type(value) is BadObject else value.metadata.resource_version
