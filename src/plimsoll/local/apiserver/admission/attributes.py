"""The attributes of a write under admission, and the 403 that rejects it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from plimsoll.core.values import Value
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import User  # noqa: TC001 - msgspec reads the field types
from plimsoll.local.apiserver.resources.registry import ServedResource  # noqa: TC001 - msgspec reads the field types

Json = dict[str, Any]

CREATE: Literal["CREATE"] = "CREATE"
UPDATE: Literal["UPDATE"] = "UPDATE"
DELETE: Literal["DELETE"] = "DELETE"


class AdmissionAttributes(Value):
    """One write: `obj` is what is to be stored (None for a deletion), `old` what is stored (None for a creation)."""

    operation: Literal["CREATE", "UPDATE", "DELETE"]
    resource: ServedResource
    user: User
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    obj: Json | None = None
    old: Json | None = None
    dry_run: bool = False

    @property
    def shown_name(self) -> str:
        """The name of the object in error messages; a name that is still to be generated is not known yet."""
        metadata = (self.obj or {}).get("metadata") or {}
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"

    def creates(self, stored_as: str) -> bool:
        return self.operation == CREATE and self.writes(stored_as)

    def writes(self, stored_as: str) -> bool:
        """Whether it writes whole objects of that resource: no deletion, and no part with an address of its own."""
        return self.obj is not None and not self.subresource and self.resource.stored_as == stored_as


class Mutator(Protocol):
    """Changes the object of an attempt in place, or refuses it."""

    def mutate(self, attempt: AdmissionAttributes) -> None: ...


class Validator(Protocol):
    """Rejects a write, or lets it pass."""

    def validate(self, attempt: AdmissionAttributes) -> None: ...


def forbidden(attempt: AdmissionAttributes, why: str, **details: Any) -> status_errors.StatusError:
    """The 403 of an admission plugin."""
    resource, name = attempt.resource, attempt.shown_name
    named = status_errors.build_details(name, group=resource.group, kind=resource.plural, **details)
    return status_errors.forbidden(f'{resource.full_name} "{name}" is forbidden: {why}', details=named)
