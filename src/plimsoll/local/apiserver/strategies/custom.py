"""The strategy of custom resources: pruned, defaulted and validated by the compiled version of their definition.

Stored objects are presented in the requested version, with its defaults: the conversion strategy is None, so only the
apiVersion differs.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.reset_fields import reset_fields
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.local.apiserver.resources.registry import get_compiled
from plimsoll.local.apiserver.strategies.interface import Decoded, Undecodable, ValidationResult
from plimsoll.local.apiserver.strategies.metadata import keep_metadata
from plimsoll.objects.schema.admission import object_metadata
from plimsoll.objects.schema.admission.defaulting import apply_defaults
from plimsoll.objects.schema.admission.embedded_resources import coerce_embedded
from plimsoll.objects.schema.admission.pruning import prune, prune_nulls
from plimsoll.objects.schema.json_values import copy, is_same

if TYPE_CHECKING:
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.storage import Store
    from plimsoll.objects.schema.api import CompiledDefinition

Json = dict[str, Any]


class CustomStrategy:
    """One version of a custom resource."""

    allows_unconditional_update = False
    creates_on_update = False

    def __init__(self, resource: ServedResource) -> None:
        assert resource.definition is not None
        # Without what was compiled: that is what a strategy is kept by, and a circle through it would keep it for ever.
        self.resource = replace(resource, compiled=None)
        self._version = get_compiled(resource).get_version(resource.version)
        self.types = {
            f"{resource.group}/{version['name']}": TypeSchema.from_definition(version["schema"]["openAPIV3Schema"])
            for version in resource.definition["spec"]["versions"]
            if version.get("served")
        }
        self._field_manager = cache(self._build_field_manager)

    @property
    def deprecation_warning(self) -> str | None:
        return self._version.deprecation_warning

    def decode(self, value: Json) -> Decoded | Undecodable:
        """Prune and default; kind and apiVersion are not looked at."""
        if value.get("metadata") is None:
            value = {**value, "metadata": {}}
        problem = object_metadata.decode_problem(value["metadata"])
        if problem is not None:
            return Undecodable(problem=problem)
        obj: Json = copy(value)
        unknown = object_metadata.drop_unknown(obj["metadata"], "metadata")
        unknown += prune(obj, self._version.schema, is_resource=True)
        prune_nulls(obj, self._version.schema)
        unknown += coerce_embedded(obj, self._version.schema)
        apply_defaults(obj, self._version.schema)
        return Decoded(value=obj, unknown_fields=tuple(unknown))

    def decode_changed(self, value: Json, before: Json) -> Decoded | Undecodable:  # noqa: ARG002 - part of the protocol
        return self.decode(value)

    def prepare_create(self, obj: Json) -> Json:
        created = {**obj, "metadata": {**obj["metadata"], "generation": 1}}
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            created["metadata"].pop(name, None)
        if self._version.has_status:
            created.pop("status", None)
        return created

    def prepare_update(self, new: Json, old: Json, *, subresource: str) -> Json:
        if subresource == "status":
            updated = dict(old)
            updated["metadata"] = {**old["metadata"]}
            if "managedFields" in new["metadata"]:
                updated["metadata"]["managedFields"] = new["metadata"]["managedFields"]
            _take(updated, new, "status")
            return updated
        updated = {**new, "metadata": keep_metadata(new["metadata"], old["metadata"])}
        if self._version.has_status:
            _take(updated, old, "status")
        before = old["metadata"].get("generation") or 0
        changed = not is_same(_strip_metadata(updated), _strip_metadata(old))
        updated["metadata"]["generation"] = before + 1 if changed else before
        return updated

    def allocate(self, obj: Json, old: Json | None, store: Store) -> Json:  # noqa: ARG002 - nothing is taken from a stock
        return obj

    def reallocate(self, obj: Json, old: Json | None, store: Store, *, requested: Json) -> Json:  # noqa: ARG002 - as above
        return obj

    def validate_create(self, obj: Json) -> ValidationResult:
        admission = self._version.admit_create(obj, field_validation="Ignore")
        return ValidationResult(errors=admission.errors, warnings=self._select_new_warnings(admission.warnings))

    def validate_update(self, new: Json, old: Json, *, subresource: str) -> ValidationResult:
        part: Literal["status"] | None = "status" if subresource == "status" else None
        admission = self._version.admit_update(new, old, subresource=part, field_validation="Ignore")
        return ValidationResult(errors=admission.errors, warnings=self._select_new_warnings(admission.warnings))

    def _select_new_warnings(self, warnings: tuple[str, ...]) -> tuple[str, ...]:
        """Without the deprecation warning, which the request handler adds once."""
        return tuple(text for text in warnings if text != self._version.deprecation_warning)

    def present(self, stored: Json) -> Json:
        return self._version.present(stored)

    def to_storage(self, obj: Json) -> Json:
        return {**obj, "apiVersion": self.resource.storage_version}

    @property
    def is_stored_as_presented(self) -> bool:
        # A definition may have gained defaults since an object was stored, so every one is looked at again.
        return False

    def get_field_manager(self, subresource: str) -> FieldManager:
        return self._field_manager(subresource)

    def _build_field_manager(self, subresource: str) -> FieldManager:
        return FieldManager(
            self.types,
            api_version=self.resource.api_version,
            kind=self.resource.kind,
            subresource=subresource,
            reset=reset_fields(self.resource.kind, subresource, has_status=self._version.has_status),
        )


_KNOWN: WeakKeyDictionary[CompiledDefinition, dict[str, CustomStrategy]] = WeakKeyDictionary()


def get_custom_strategy(resource: ServedResource) -> CustomStrategy:
    """Made once a definition and version; gone with the last resource that holds what was compiled."""
    by_version = _KNOWN.setdefault(get_compiled(resource), {})
    found = by_version.get(resource.version)
    if found is None:
        found = by_version[resource.version] = CustomStrategy(resource)
    return found


def _take(target: Json, source: Json, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _strip_metadata(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if name != "metadata"}
