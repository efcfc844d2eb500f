"""Object metadata and the small types that all kinds share: identity, labels, owners, times, quantities.

Three conventions hold for all wire structs:

* Fields mirror the API in snake_case; absent and null both mean the default. The default is `None` where absence
  differs from zero (`replicas`, `priority`), and the zero value elsewhere.
* Lists are tuples. Against lists, 20,000 pods decode in less than half the time, take an eighth less memory and leave
  nothing for the garbage collector to traverse (4 ms instead of 130 ms per pass), because it does not track a tuple of
  untracked values. A struct without a map can also be hashed, which is how equal structs are grouped.
* Structs are partial: fields that Plimsoll does not read are not declared, and the decoder skips them. So a decoded
  object is never written back as a whole.

Maps are dicts, because msgspec builds them fastest. The maps of a decoded object must not be changed: objects may
share a default.
"""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from plimsoll.core.durations import to_utc
from plimsoll.core.values import Int64, Wire

# A quantity on the wire: mostly a string, but files have `cpu: 1` and `cpu: 0.5`.
Quantity = str | int | float
ResourceList = dict[str, Quantity]
IntOrString = Int64 | str
# Always aware: a time without a zone could not be compared with a clock, and Kubernetes refuses it too.
Time = Annotated[datetime, Meta(tz=True)]
# JSON of unknown shape: OpenAPI schemas, defaults inside them. Null is a value of its own in there.
Json = Any


def format_time(moment: datetime) -> str:
    """A time as Kubernetes writes it into objects: whole seconds, in UTC."""
    return _format(moment if moment.tzinfo is UTC else to_utc(moment))


@lru_cache(maxsize=64)
def _format(moment: datetime) -> str:
    # Cached, because many objects have the same time in virtual time. strftime is three times as slow.
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


class MicroTime(datetime):
    """A time that Kubernetes reads only with exactly six fractional digits: in leases, and an event's `eventTime`.

    A type of its own, because msgspec writes a whole second without a fraction, which a real API server refuses.
    """

    @classmethod
    def of(cls, time: datetime) -> Self:
        utc = time.astimezone(UTC)
        return cls.combine(utc.date(), utc.timetz())

    @classmethod
    def parse(cls, text: str) -> Self:
        """The time, or a ValueError for what is not RFC 3339 with a zone."""
        try:
            return cls.of(msgspec.convert(text, Time))
        except (msgspec.ValidationError, OverflowError) as error:
            # A plain ValueError: to this msgspec adds the path of the field.
            raise ValueError(str(error)) from error

    def to_text(self) -> str:
        return self.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class OwnerReference(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire):
    """Identity and bookkeeping of an object; `managedFields` is left out, it is half of a small object's bytes."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    unknown_fields: tuple[str, ...] = msgspec.field(default=(), name="plimsoll.io/unknownFields")
    """What could not be decoded, `path: problem`; the object counts as one without these fields. Not on the wire."""


class WireObject(Wire):
    """Base of everything with a kind of its own. Items of a list carry neither `apiVersion` nor `kind`."""

    # Set where two groups have a kind of the same name, so that the struct needs another name.
    KIND: ClassVar[str] = ""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def get_kind_name(cls) -> str:
        return cls.KIND or cls.__name__


class ListMeta(Wire):
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: Int64 | None = None


class LabelSelectorRequirement(Wire):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire):
    """Empty selects everything. Where a field may be absent (`LabelSelector | None`), absent selects nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Wire):
    """The shape of conditions that newer kinds and custom resources share (`meta.v1.Condition`)."""

    type: str = ""
    status: str = ""
    observed_generation: Int64 = 0
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class ObjectReference(Wire):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class LocalObjectReference(Wire):
    name: str = ""
