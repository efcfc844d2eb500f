"""Admission of custom resources: the steps of an API server between decoding a body and storing it.

Unknown fields and nulls are pruned, defaults, status and generation are set, and everything is validated. A
`CompiledVersion` does this for one version of a definition. Pure: no clock, no store; arguments are never changed.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.values import Value
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission import metadata_checks, object_metadata, scale
from plimsoll.objects.schema.admission.defaulting import apply_defaults
from plimsoll.objects.schema.admission.embedded_resources import check_embedded_resources, coerce_embedded
from plimsoll.objects.schema.admission.list_types import validate_list_items
from plimsoll.objects.schema.admission.pruning import prune, prune_nulls
from plimsoll.objects.schema.admission.validation import ValueValidator
from plimsoll.objects.schema.json_values import Refused, copy, is_same, take_over
from plimsoll.objects.schema.rules.correlation import Correlation
from plimsoll.objects.schema.structural import has_rules

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError
    from plimsoll.objects.schema.rules.rules import RuleTree
    from plimsoll.objects.schema.structural import StructuralSchema

FieldValidation = Literal["Strict", "Warn", "Ignore"]

# An update without these fields leaves them unchanged.
_KEPT_METADATA = ("namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Names(Value):
    """The properties that all versions of a definition share."""

    group: str
    kind: str
    plural: str
    namespaced: bool


class Admission(Value):
    """The answer: the object as it would be stored, or why it is not.

    `bad_request` is the message of a 400 (the body could not be decoded, or has unknown fields under Strict), `errors`
    make a 422; with either, `object` is not to be stored.
    """

    object: dict[str, Any]
    group: str
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    unknown_fields: tuple[str, ...] = ()
    bad_request: str | None = None

    @property
    def admitted(self) -> bool:
        return not self.errors and self.bad_request is None

    def build_status(self) -> dict[str, Any] | None:
        """The Status body of a refusal."""
        if self.bad_request is not None:
            return {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": self.bad_request,
                "reason": "BadRequest",
                "code": 400,
            }
        if not self.errors:
            return None
        metadata = self.object.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        kind = self.object.get("kind")
        return fields.build_invalid_status(
            kind=kind if isinstance(kind, str) else "",
            group=self.group,
            name=name if isinstance(name, str) else "",
            errors=self.errors,
        )


class CompiledVersion:
    """One version of a definition: everything needed to admit objects of it. Reusable, and safe to share."""

    def __init__(self, names: Names, version: dict[str, Any], *, schema: StructuralSchema, warning: str | None) -> None:
        self.name: str = version["name"]
        self.names = names
        self.schema = schema
        self.served = bool(version.get("served"))
        self.deprecation_warning = warning
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self.scale = _scale_paths(subresources.get("scale"))

    @property
    def api_version(self) -> str:
        return f"{self.names.group}/{self.name}"

    @cached_property
    def _validator(self) -> ValueValidator:
        return ValueValidator(self.schema)

    @cached_property
    def _status_validator(self) -> ValueValidator | None:
        status = self.schema.properties.get("status")
        return ValueValidator(status) if status else None

    @cached_property
    def _has_embedded_resources(self) -> bool:
        return any(node.embedded_resource for node in self.schema.walk())

    @cached_property
    def _rules(self) -> RuleTree | None:
        if not has_rules(self.schema):
            return None
        from plimsoll.objects.schema.rules.rules import build_rule_tree  # noqa: PLC0415 - most schemas need no CEL

        return build_rule_tree(self.schema)

    def present(self, stored: dict[str, Any]) -> dict[str, Any]:
        """A stored object as this version shows it: its apiVersion, without unknown fields, with defaults."""
        shown: dict[str, Any] = copy(stored)
        shown["apiVersion"] = self.api_version
        self._coerce(shown)
        return shown

    def admit_create(self, resource: Any, *, field_validation: FieldValidation = "Warn") -> Admission:
        """Admission of a new object."""
        decoded = self._decode(resource, field_validation)
        if not decoded.admitted:
            return decoded
        created = decoded.object
        if self.has_status:
            created.pop("status", None)
        created["metadata"]["generation"] = 1
        return self._validate(created, None, decoded=decoded)

    def admit_update(
        self,
        resource: Any,
        old: dict[str, Any],
        *,
        subresource: Literal["status"] | None = None,
        field_validation: FieldValidation = "Warn",
    ) -> Admission:
        """Admission of a changed object; `old` is what is stored, in any version of this definition."""
        decoded = self._decode(resource, field_validation)
        if not decoded.admitted:
            return decoded
        stored = _require_object(old)
        problem = stored.text if isinstance(stored, fields.FieldError) else _find_metadata_problem(stored)
        if problem is not None or isinstance(stored, fields.FieldError):
            message = f"the object to be replaced cannot be read: {problem}"
            return Admission(object=decoded.object, group=self.names.group, bad_request=message)
        before = self.present(stored)
        if subresource == "status":
            return self._validate(_take_new_status(before, decoded.object), before, decoded=decoded, only_status=True)
        updated = decoded.object
        self._prepare_update(updated, before)
        return self._validate(updated, before, decoded=decoded)

    def _prepare_update(self, updated: dict[str, Any], before: dict[str, Any]) -> None:
        if self.has_status:
            updated.pop("status", None)
            if "status" in before:
                updated["status"] = copy(before["status"])
        metadata = updated["metadata"]
        old_metadata = before["metadata"]
        for name in _KEPT_METADATA:
            if name not in metadata and name in old_metadata:
                metadata[name] = old_metadata[name]
        generation = old_metadata.get("generation") or 0
        changed = not is_same(_strip_metadata(updated), _strip_metadata(before))
        metadata["generation"] = generation + 1 if changed else generation

    def _decode(self, resource: Any, field_validation: FieldValidation) -> Admission:
        """Take the object over and coerce it; the answer has warnings already, and errors if it cannot go on."""
        taken = _require_object(resource)
        if isinstance(taken, fields.FieldError):
            return Admission(object={}, group=self.names.group, errors=(taken,))
        problem = _find_metadata_problem(taken)
        if problem is not None:
            return Admission(object=taken, group=self.names.group, bad_request=self._cannot_be_handled(problem))
        unknown = self._coerce(taken)
        complaints = [f'unknown field "{path}"' for path in unknown] if field_validation != "Ignore" else []
        if complaints and field_validation == "Strict":
            problem = f"strict decoding error: {', '.join(complaints)}"
            return Admission(
                object=taken,
                group=self.names.group,
                unknown_fields=tuple(unknown),
                bad_request=self._cannot_be_handled(problem),
            )
        deprecated = [self.deprecation_warning] if self.deprecation_warning else []
        return Admission(
            object=taken,
            group=self.names.group,
            warnings=(*deprecated, *complaints),
            unknown_fields=tuple(unknown),
        )

    def _cannot_be_handled(self, problem: str) -> str:
        kind = self.names.kind
        return f'{kind} in version "{self.name}" cannot be handled as a {kind}: {problem}'

    def _coerce(self, resource: dict[str, Any]) -> list[str]:
        """Prune and fill in; the paths of unknown fields, in the order the real server reports them."""
        if resource.get("metadata") is None:
            resource["metadata"] = {}
        unknown = object_metadata.drop_unknown(resource["metadata"], "metadata")
        unknown += prune(resource, self.schema, is_resource=True)
        prune_nulls(resource, self.schema)
        if self._has_embedded_resources:
            unknown += coerce_embedded(resource, self.schema)
        apply_defaults(resource, self.schema)
        return unknown

    def _validate(
        self,
        resource: dict[str, Any],
        before: dict[str, Any] | None,
        *,
        decoded: Admission,
        only_status: bool = False,
    ) -> Admission:
        warnings = list(decoded.warnings)
        errors = self._validate_type(resource)
        if not errors:
            correlation = None if before is None else Correlation(resource, before, self.schema)
            errors = self._validate_values(resource, before, correlation, only_status=only_status)
            errors += self._validate_rules(resource, before, correlation, errors, warnings)
        return Admission(
            object=resource,
            group=self.names.group,
            errors=tuple(errors),
            warnings=tuple(warnings),
            unknown_fields=decoded.unknown_fields,
        )

    def _validate_type(self, resource: dict[str, Any]) -> list[FieldError]:
        expected = {"kind": self.names.kind, "apiVersion": self.api_version}
        return [
            fields.invalid(name, resource.get(name) or "", f"must be {text}")
            for name, text in expected.items()
            if resource.get(name) != text
        ]

    def _validate_values(
        self,
        resource: dict[str, Any],
        before: dict[str, Any] | None,
        correlation: Correlation | None,
        *,
        only_status: bool,
    ) -> list[FieldError]:
        metadata = resource["metadata"]
        if before is None:
            errors = metadata_checks.validate_new_metadata(
                metadata,
                "metadata",
                namespaced=self.names.namespaced,
                name_rule=find_subdomain_problems,
            )
        else:
            errors = metadata_checks.validate_metadata_update(metadata, before["metadata"], "metadata")
        if only_status:
            errors += self._validate_status(resource, correlation)
        else:
            errors += self._validator.validate(resource, correlation=correlation)
            errors += scale.validate_spec(resource, self.scale) if self.scale else []
        errors += scale.validate_status(resource, self.scale) if self.scale else []
        if self._has_embedded_resources:
            errors += check_embedded_resources(resource, self.schema)
        # Duplicates that were there before are tolerated, and with them every other one.
        if before is None or not validate_list_items(before, self.schema):
            errors += validate_list_items(resource, self.schema)
        return errors

    def _validate_status(self, resource: dict[str, Any], correlation: Correlation | None) -> list[FieldError]:
        if self._status_validator is None or "status" not in resource:
            return []
        of_status = correlation.key("status") if correlation else None
        return self._status_validator.validate(resource["status"], path="status", correlation=of_status)

    def _validate_rules(
        self,
        resource: dict[str, Any],
        before: dict[str, Any] | None,
        correlation: Correlation | None,
        errors: list[FieldError],
        warnings: list[str],
    ) -> list[FieldError]:
        """Errors of the rules, unless earlier errors block them; failures that an update may have go to `warnings`."""
        if self._rules is None:
            return []
        from plimsoll.objects.schema.rules.rules import (  # noqa: PLC0415 - as above
            BLOCKING,
            NOT_CHECKED,
        )

        if any(error.type in BLOCKING for error in errors):
            return [NOT_CHECKED]
        results = self._rules.validate(resource, before, correlation=correlation)
        warnings += results.warnings
        return results.errors


def _scale_paths(declared: dict[str, Any] | None) -> scale.ScalePaths | None:
    if not declared:
        return None
    return scale.ScalePaths(
        spec_replicas=declared["specReplicasPath"],
        status_replicas=declared["statusReplicasPath"],
        label_selector=declared.get("labelSelectorPath"),
    )


def _require_object(resource: Any) -> dict[str, Any] | FieldError:
    taken = take_over(resource)
    if isinstance(taken, Refused):
        return fields.invalid(taken.path, fields.OMITTED, taken.problem)
    if not isinstance(taken, dict):
        return fields.type_invalid("", fields.OMITTED, "must be an object")
    return taken


def _find_metadata_problem(resource: dict[str, Any]) -> str | None:
    metadata = resource.get("metadata")
    return None if metadata is None else object_metadata.decode_problem(metadata)


def _take_new_status(before: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Restrict an update of the status subresource to the status and managedFields."""
    updated: dict[str, Any] = copy(before)
    managed = new["metadata"].get("managedFields")
    if managed is not None:
        updated["metadata"]["managedFields"] = managed
    updated.pop("status", None)
    if "status" in new:
        updated["status"] = new["status"]
    return updated


def _strip_metadata(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name != "metadata"}
