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

# Code that runs for every event and handler compares types instead of calling `isinstance`, which takes four times as
# long with the metaclass of our structs. None of these types has subclasses.


class Key(NamedTuple):
    """The key of an object. The namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# The key inside the informer. A `Key` equals it and may be passed for it, but the garbage collector traverses a hundred
# thousand named tuples again and again, while it stops tracking plain tuples of strings.
KeyTuple: TypeAlias = tuple[str, str]


class Added(Value, Generic[V]):
    """An object that the handler did not know, or that can be decoded again."""

    new: V

    @property
    def key(self) -> Key:
        return get_key(self.new)


class Updated(Value, Generic[V]):
    """A new version. `old` is the version that the handler received last; versions in between may be skipped."""

    old: V
    new: V

    @property
    def key(self) -> Key:
        return get_key(self.new)


class Deleted(Value, Generic[V]):
    """A deletion. `last` is the last known state, which may be newer than the one the handler received.

    `is_inferred`: no deletion event was received; a list did not have the object, or had another of the same name.
    """

    last: V
    is_inferred: bool = False

    @property
    def key(self) -> Key:
        return get_key(self.last)


class BecameUnreadable(Value, Generic[V]):
    """The object exists and cannot be decoded. `last` is the version that the handler knew, if any."""

    bad: BadObject
    last: V | None = None

    @property
    def key(self) -> Key:
        return Key(self.bad.namespace, self.bad.name)


class UnreadableDeleted(Value):
    """An object that could not be decoded was deleted."""

    bad: BadObject

    @property
    def key(self) -> Key:
        return Key(self.bad.namespace, self.bad.name)


Change: TypeAlias = Added[V] | Updated[V] | Deleted[V] | BecameUnreadable[V] | UnreadableDeleted


class Deletion(NamedTuple, Generic[V]):
    """The deletion of an object: its last state, and whether the deletion was received or inferred."""

    last: V | BadObject | None
    is_inferred: bool


def list_changes(
    before: V | BadObject | None, after: V | BadObject | None, deletion: Deletion[V] | None = None
) -> tuple[Change[V], ...]:
    """The changes that lead a handler from `before` to `after`. None stands for an object that does not exist."""
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
    """Whether the change is the usual one: another version of the same object."""
    old, new = before.metadata, after.metadata
    return old.uid == new.uid and old.resource_version != new.resource_version


def is_unchanged(old: V | BadObject, new: V | BadObject) -> bool:
    """Whether both are the same state of the same object.

    Equal versions are not enough: a server that was restored from a backup assigns versions a second time, and a
    custom resource whose schema got a default has new content under an old version. `reflector.type_meta` makes the
    objects of lists and watches comparable.
    """
    version = get_version(old)
    return bool(version) and version == get_version(new) and not is_other_object(old, new) and old == new


def is_other_object(value: V | BadObject, other: V | BadObject) -> bool:
    """Whether the two are known to be different objects, by their uids."""
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


def get_view(value: V) -> WireObject:
    """The struct, whether or not its bytes are stored with it."""
    return value.view if isinstance(value, RawObject) else value


def get_key(value: V | BadObject) -> Key:
    if type(value) is BadObject:
        return Key(value.namespace, value.name)
    metadata = value.metadata
    return Key(metadata.namespace, metadata.name)


def get_key_tuple(value: V | BadObject) -> KeyTuple:
    if type(value) is BadObject:
        return (value.namespace, value.name)
    metadata = value.metadata
    return (metadata.namespace, metadata.name)


def get_version(value: V | BadObject) -> str:
    return value.resource_version if type(value) is BadObject else value.metadata.resource_version
