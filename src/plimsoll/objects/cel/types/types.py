"""The types of CEL as the schema declares them and as the checker infers them.

`objects.schema` builds these from structural schemas; the checker, the cost estimator and the value adapter read
them. Sizes (`max_length`, `max_items`, `max_properties`) matter only to the cost estimator: two string types with
different limits are the same type. `None` means unknown: the estimator then assumes the largest possible number, so a
schema without limits should get those that follow from the request size (3 MiB), as in Kubernetes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

ListKind = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True)
class CelType:
    """Base of all types."""

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SimpleType(CelType):
    """A type without parameters or limits; `name` is how CEL spells it in messages."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StringType(CelType):
    """Text of at most `max_length` code points."""

    max_length: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "string"


@dataclass(frozen=True, slots=True)
class BytesType(CelType):
    """Bytes, at most `max_length`."""

    max_length: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "bytes"


@dataclass(frozen=True, slots=True)
class ListType(CelType):
    """A list; `kind` and `map_keys` are the schema's x-kubernetes-list-type and -list-map-keys."""

    element: CelType
    max_items: int | None = field(default=None, compare=False)
    kind: ListKind = field(default="atomic", compare=False)
    map_keys: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"list({self.element})"


@dataclass(frozen=True, slots=True)
class MapType(CelType):
    """A map (`additionalProperties`)."""

    key: CelType
    value: CelType
    max_properties: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"map({self.key}, {self.value})"


@dataclass(frozen=True, slots=True)
class ObjectType(CelType):
    """An object with declared fields. `fields` is keyed by the name in JSON, not the escaped one.

    Two object types are the same if they have the same name, so names must be unique within one compilation
    (the path in the schema is).
    """

    name: str
    fields: Mapping[str, CelType] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    required: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class OptionalType(CelType):
    """A value that may be absent, such as `oldSelf` under optionalOldSelf."""

    of: CelType

    def __str__(self) -> str:
        return f"optional_type({self.of})"


@dataclass(frozen=True, slots=True)
class TypeType(CelType):
    """The type of a type: what `type(x)` returns."""

    of: CelType

    def __str__(self) -> str:
        return f"type({self.of})"


@dataclass(frozen=True, slots=True)
class TypeVariable(CelType):
    """A type variable in a function's signature, or a type that is still unknown during checking."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = SimpleType("bool")
INT = SimpleType("int")
UINT = SimpleType("uint")
DOUBLE = SimpleType("double")
STRING = StringType()
BYTES = BytesType()
TIMESTAMP = SimpleType("timestamp")
DURATION = SimpleType("duration")
NULL = SimpleType("null")
DYN = SimpleType("dyn")
ERROR = SimpleType("!error!")
QUANTITY = SimpleType("kubernetes.Quantity")
URL = SimpleType("kubernetes.URL")
IP = SimpleType("net.IP")
CIDR = SimpleType("net.CIDR")
SEMVER = SimpleType("kubernetes.Semver")
FORMAT = SimpleType("kubernetes.NamedFormat")
