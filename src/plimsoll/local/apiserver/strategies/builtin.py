"""The strategy of built-in kinds: decoded, defaulted and validated by `objects.builtin`, serialised as Go does.

What only some kinds do is in `kind_preparation`; addresses of services are in `service_allocation`, the two groups of
Event in `events`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.reset_fields import reset_fields
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.local.apiserver.strategies import events, kind_preparation, service_allocation
from plimsoll.local.apiserver.strategies.generation import choose_first_generation, compute_next_generation
from plimsoll.local.apiserver.strategies.go_serialization import as_go_writes
from plimsoll.local.apiserver.strategies.interface import Decoded, Undecodable, ValidationResult
from plimsoll.local.apiserver.strategies.metadata import keep_metadata
from plimsoll.local.apiserver.strategies.template_cache import PodTemplateCache
from plimsoll.objects.builtin import api
from plimsoll.objects.builtin.decoding import decode, openapi
from plimsoll.objects.builtin.defaults import defaults
from plimsoll.objects.schema.json_values import copy, is_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

# PUT without a resourceVersion is refused for them.
_CONDITIONAL: Final = frozenset({"Lease", "CustomResourceDefinition", "PodDisruptionBudget", "PriorityClass"})
_CREATED_BY_PUT: Final = frozenset({"Lease", "Endpoints", "LimitRange", "Event"})
# Subresources through which the server itself writes; other clients cannot use them to avoid the rules of an update.
_TRUSTED: Final = frozenset({"binding", "ephemeralcontainers", "finalize", "resize"})
_LONGEST_KEPT_BYTES: Final = 16_384
_encoder: Final = msgspec.json.Encoder()


class BuiltinStrategy:
    """One built-in kind in one version."""

    def __init__(self, resource: ServedResource) -> None:
        self.resource = resource
        self.api_version, self.kind = resource.api_version, resource.kind
        self.allows_unconditional_update = self.kind not in _CONDITIONAL
        self.creates_on_update = self.kind in _CREATED_BY_PUT
        self._is_service = (self.api_version, self.kind) == ("v1", "Service")
        self.has_status = resource.find_subresource("status") is not None
        component = openapi.find_schema_name(self.api_version, self.kind)
        self._component = component or ""
        schema = TypeSchema.from_builtin(self.api_version, self.kind)
        self.types = {self.api_version: schema} if schema is not None else {}
        self._field_manager = cache(self._build_field_manager)
        self._decoded_text = lru_cache(maxsize=64)(self._read_and_decoded)
        self._siblings = PodTemplateCache() if (self.api_version, self.kind) == ("v1", "Pod") else None

    def decode(self, value: Json) -> Decoded | Undecodable:
        """What is made from one template comes in numbers, each the same: decoding it once spares a tenth."""
        text = _encoder.encode(value) if _is_from_template(value) else b""
        if not text or len(text) > _LONGEST_KEPT_BYTES:
            return self._decode(value)
        known = self._decoded_text(text)
        return known if isinstance(known, Undecodable) else msgspec.structs.replace(known, value=copy(known.value))

    def _read_and_decoded(self, text: bytes) -> Decoded | Undecodable:
        return self._decode(msgspec.json.decode(text))

    def _decode(self, value: Json, *, fill_in: Callable[[Json], None] = defaults.fill_in) -> Decoded | Undecodable:
        decoded = decode.decode(value, self._component)
        problem = decode.choose_go_error(decoded.problems)
        if problem is not None:
            return Undecodable(problem=problem)
        whole = decoded.value
        if self.kind in kind_preparation.HAVE_LATER_DEFAULTS:
            with kind_preparation.undo_later_defaults(whole, self.kind):
                fill_in(whole)
        else:
            fill_in(whole)
        whole = self._write_out_defaults(whole)
        kind_preparation.prepare_for_tracking(whole, self.kind)
        return Decoded(value=whole, unknown_fields=tuple(decoded.unknown_fields))

    def decode_changed(self, value: Json, before: Json) -> Decoded | Undecodable:
        """A new status alone is decoded alone, for a third of the cost: nothing in it depends on the rest."""
        changed = before.keys() ^ value.keys() | {name for name, item in value.items() if before.get(name) is not item}
        if changed - {"apiVersion", "kind"} != {"status"} or not value.get("status"):
            return self.decode(value)
        alone = {name: item for name, item in value.items() if name in {"apiVersion", "kind", "status"}}
        decoded = self._decode(alone, fill_in=defaults.fill_in_status)
        if isinstance(decoded, Undecodable):
            return decoded
        return msgspec.structs.replace(decoded, value={**value, "status": decoded.value["status"]})

    def _write_out_defaults(self, obj: Json) -> Json:
        """As Go writes it; `obj` is used up."""
        defaults.write_out_empty_fields(obj)
        return as_go_writes(obj, self._component)

    def prepare_create(self, obj: Json) -> Json:
        return self._prepare(obj) if self._siblings is None else self._siblings.prepare(obj, self._prepare)

    def _prepare(self, obj: Json) -> Json:
        defaults.prepare_for_create(obj)
        whole = self._write_out_defaults(obj)
        metadata = whole["metadata"]
        generation = choose_first_generation(self.kind, metadata.get("generation"))
        if generation:
            metadata["generation"] = generation
        kind_preparation.on_create(whole, self.kind)
        return whole

    def prepare_update(self, new: Json, old: Json, *, subresource: str) -> Json:
        if subresource in _TRUSTED:
            return self._count_generation({**new, "metadata": dict(new["metadata"])}, old)
        metadata = keep_metadata(new["metadata"], old["metadata"])
        if subresource == "status":
            updated = kind_preparation.build_status_update(self.kind, {**new, "metadata": metadata}, old)
            kind_preparation.keep(updated["metadata"], old["metadata"], "generation")
            return updated
        updated = {**new, "metadata": metadata}
        if self.has_status:
            kind_preparation.keep(updated, old, "status")
        kind_preparation.on_update(updated, old, self.kind)
        updated = self._count_generation(updated, old)
        # What decoding left out until ownership was settled (see `prepare_for_tracking`) is written again.
        return self._write_out_defaults(copy(updated)) if self.kind == "Event" else updated

    def _count_generation(self, updated: Json, old: Json) -> Json:
        generation = compute_next_generation(updated, old, kind=self.kind)
        if generation is None:
            updated["metadata"].pop("generation", None)
        else:
            updated["metadata"]["generation"] = generation
        return updated

    def allocate(self, obj: Json, old: Json | None, store: Store) -> Json:
        return service_allocation.allocate(obj, old, store) if self._is_service else obj

    def reallocate(self, obj: Json, old: Json | None, store: Store, *, requested: Json) -> Json:
        return service_allocation.allocate({**obj, "spec": requested["spec"]}, old, store) if self._is_service else obj

    def validate_create(self, obj: Json) -> ValidationResult:
        judged = self._validate(obj) if self._siblings is None else self._siblings.validate(obj, self._validate)
        return judged or ValidationResult()

    def _validate(self, obj: Json) -> ValidationResult:
        errors = [*api.validate_create(obj), *kind_preparation.find_further_errors(obj, self.api_version, self.kind)]
        return ValidationResult(errors=tuple(errors))

    def validate_update(self, new: Json, old: Json, *, subresource: str) -> ValidationResult:
        if subresource in _TRUSTED or (subresource == "status" and _is_all_but_status_kept(new, old)):
            return ValidationResult()
        return ValidationResult(errors=tuple(api.validate_update(new, old)))

    def present(self, stored: Json) -> Json:
        if stored.get("apiVersion") == self.api_version:
            return stored
        return events.convert(stored, self.api_version)

    def to_storage(self, obj: Json) -> Json:
        if self.api_version != self.resource.storage_version:
            obj = events.convert(obj, self.resource.storage_version)
        first = {"kind": self.kind, "apiVersion": self.resource.storage_version, "metadata": obj["metadata"]}
        return {**first, **{name: value for name, value in obj.items() if name not in first}}

    @property
    def is_stored_as_presented(self) -> bool:
        return self.api_version == self.resource.storage_version

    def get_field_manager(self, subresource: str) -> FieldManager:
        return self._field_manager(subresource)

    def _build_field_manager(self, subresource: str) -> FieldManager:
        return FieldManager(
            self.types,
            api_version=self.api_version,
            kind=self.kind,
            subresource=subresource,
            reset=reset_fields(self.kind, subresource, has_status=self.has_status),
        )


def _is_from_template(value: Json) -> bool:
    """Whether the server generates the name: controllers create the pods of a template that way."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("generateName")) and not metadata.get("uid")


# Kept by the server itself.
_SERVER_METADATA: Final = frozenset({"managedFields", "resourceVersion", "generation"})


def _is_all_but_status_kept(new: Json, old: Json) -> bool:
    """Whether everything that is ever judged is as it was let in. Judging it again was a seventh of a status patch."""
    if any(new.get(name) is not item for name, item in old.items() if name not in {"metadata", "status"}):
        return False
    now, then = (
        {name: item for name, item in element["metadata"].items() if name not in _SERVER_METADATA}
        for element in (new, old)
    )
    return is_same(now, then)
