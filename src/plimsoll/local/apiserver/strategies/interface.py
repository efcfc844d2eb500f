"""The interface between handlers and kinds.

A write goes through `decode`, `prepare_create` or `prepare_update`, and `validate_create` or `validate_update`, with
field management and admission in between. Values are JSON objects in the version of the request; `present` and
`to_storage` convert from and to the stored version. Only `allocate` and `reallocate` read the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from plimsoll.core.values import Value
from plimsoll.objects.schema.field_errors import FieldError  # noqa: TC001 msgspec reads the field types

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.field_manager import FieldManager
    from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]


class Decoded(Value):
    """The object as the server holds it: no unknown fields, defaults filled in."""

    value: Json
    unknown_fields: tuple[str, ...] = ()


class Undecodable(Value):
    """A body that does not decode, with Go's message."""

    problem: str


class ValidationResult(Value):
    """What is wrong with an object, and what is merely worth a warning."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class Strategy(Protocol):
    """One resource in one version."""

    resource: ServedResource
    allows_unconditional_update: bool
    creates_on_update: bool
    types: dict[str, TypeSchema]

    def decode(self, value: Json) -> Decoded | Undecodable: ...

    def decode_changed(self, value: Json, before: Json) -> Decoded | Undecodable:
        """`decode` of a changed `before`: what `value` still shares with it is already decoded."""
        ...

    def prepare_create(self, obj: Json) -> Json:
        """Status and generation put right; metadata has its uid already."""
        ...

    def prepare_update(self, new: Json, old: Json, *, subresource: str) -> Json:
        """What this endpoint may not change is taken from `old`; generation counted up if it has to be."""
        ...

    def allocate(self, obj: Json, old: Json | None, store: Store) -> Json:
        """What is taken from a common stock: a service's addresses and ports."""
        ...

    def reallocate(self, obj: Json, old: Json | None, store: Store, *, requested: Json) -> Json:
        """`allocate` at the instant of writing, when others may have taken what `obj` was given meanwhile.

        `requested` is the object as it went into `allocate`. Nothing else of `obj` changes.
        """
        ...

    def validate_create(self, obj: Json) -> ValidationResult: ...

    def validate_update(self, new: Json, old: Json, *, subresource: str) -> ValidationResult: ...

    def present(self, stored: Json) -> Json: ...

    def to_storage(self, obj: Json) -> Json: ...

    @property
    def is_stored_as_presented(self) -> bool:
        """Whether stored bytes may be sent as they are."""
        ...

    def get_field_manager(self, subresource: str) -> FieldManager: ...
