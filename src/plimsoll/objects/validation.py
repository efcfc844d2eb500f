"""Validates objects: by the built-in rules, by the definition of their kind, or as definitions.

It is strict like kubectl: an unknown field is an error, because it is usually a typing mistake.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.objects import builtin
from plimsoll.objects.codec.manifests import Manifest, read_manifests
from plimsoll.objects.schema.api import CompiledDefinition, compile_definition
from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.schema.admission.admission import Admission
    from plimsoll.objects.schema.field_errors import FieldError

LARGEST_BODY_BYTES = 3 * 1024 * 1024
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Complaint(Value):
    """One thing wrong: where, what kind of wrong, and the sentence."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ValidationResult(Value):
    """The errors and warnings of an object."""

    complaints: tuple[Complaint, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.complaints


class ManifestValidator:
    """Validates built-in kinds, kinds of the shipped definitions, and kinds of added definitions."""

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, str], CompiledDefinition] = {}
        self._knows_shipped = False
        self._not_valid: set[tuple[str, str]] = set()

    def add_definition(self, crd: dict[str, Any]) -> None:
        """Add a definition. An invalid one is only remembered; validating it reports the errors."""
        if validate_definition(crd):
            self._not_valid.add(_read_defined_kind(crd))
            return
        compiled = compile_definition(crd)
        self._definitions[compiled.names.group, compiled.names.kind] = compiled

    def validate(self, manifest: Manifest, old: Manifest | None = None) -> ValidationResult:
        """A creation, or with `old` an update of it."""
        refused = _check_identity(manifest) or _check_size(manifest)
        if refused is not None:
            return ValidationResult(complaints=(refused,))
        before = old.body if old is not None else None
        if (manifest.api_version, manifest.kind) == DEFINITION:
            return ValidationResult(complaints=_build_complaints(validate_definition(manifest.body, before)))
        if builtin.is_builtin(manifest.api_version, manifest.kind):
            return _validate_by_builtin_rules(manifest, old)
        return self._validate_by_definition(manifest, before)

    def _validate_by_definition(self, manifest: Manifest, old: dict[str, Any] | None) -> ValidationResult:
        group, _, version = manifest.api_version.rpartition("/")
        definition = self._find_definition(group, manifest.kind)
        if definition is None:
            return ValidationResult(complaints=(self._report_unknown_kind(manifest, group),))
        served = [name for name, compiled_version in definition.versions.items() if compiled_version.served]
        if version not in served:
            message = f"{manifest.kind} is not served in version {version!r}; there is {', '.join(served)}"
            return ValidationResult(complaints=(Complaint(field="apiVersion", reason="NotFound", message=message),))
        judged = definition.get_version(version)
        if old is None:
            admission = judged.admit_create(manifest.body, field_validation="Warn")
        else:
            new, before = _align_resource_versions(manifest.body, old)
            admission = judged.admit_update(new, before, field_validation="Warn")
        return _build_admission_result(admission, warning=judged.deprecation_warning)

    def _report_unknown_kind(self, manifest: Manifest, group: str) -> Complaint:
        message = (
            f"{manifest.kind} in {manifest.api_version} is not known here and cannot be judged; "
            "if it is a custom resource, give its CustomResourceDefinition with -f"
        )
        if (group, manifest.kind) in self._not_valid:
            message = f"the CustomResourceDefinition of {manifest.kind} is not valid itself"
        return Complaint(field="kind", reason="NotFound", message=message)

    def _find_definition(self, group: str, kind: str) -> CompiledDefinition | None:
        """An added definition has precedence over a shipped one; shipped ones are read on demand."""
        if (group, kind) not in self._definitions and not self._knows_shipped:
            self._knows_shipped = True
            shipped = (compile_definition(manifest.body) for manifest in list_shipped_definitions())
            self._definitions = {
                (compiled_definition.names.group, compiled_definition.names.kind): compiled_definition
                for compiled_definition in shipped
            } | self._definitions
        return self._definitions.get((group, kind))


def _read_defined_kind(crd: dict[str, Any]) -> tuple[str, str]:
    """Group and kind, as far as they can be read."""
    spec = crd.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    kind = names.get("kind") if isinstance(names, dict) else None
    return str(spec.get("group") if isinstance(spec, dict) else None), str(kind)


def list_shipped_definitions() -> Iterable[Manifest]:
    """The definitions of our own resources, as they are installed into a cluster."""
    for manifest in _read_shipped_definitions():
        yield replace(manifest, body=copy(manifest.body))


@cache
def _read_shipped_definitions() -> tuple[Manifest, ...]:
    found = sorted(files("plimsoll.objects").joinpath("crds").iterdir(), key=lambda file: file.name)
    return tuple(
        manifest
        for file in found
        if file.name.endswith(".yaml")
        for manifest in read_manifests(file.read_bytes(), source=file.name)
    )


def _check_identity(manifest: Manifest) -> Complaint | None:
    """An object must say what it is, in text."""
    for field in ("apiVersion", "kind"):
        given = manifest.body.get(field)
        if not given:
            return Complaint(field=field, reason="FieldValueRequired", message="Required value")
        if not isinstance(given, str):
            message = f"Invalid value: {given}: must be a string"
            return Complaint(field=field, reason="FieldValueTypeInvalid", message=message)
    return None


def _check_size(manifest: Manifest) -> Complaint | None:
    """A server does not read on: the answer to a huge object is short, whatever is in it."""
    if len(msgspec.json.encode(manifest.body)) <= LARGEST_BODY_BYTES:
        return None
    message = f"Request entity too large: limit is {LARGEST_BODY_BYTES}"
    return Complaint(field="", reason="RequestEntityTooLarge", message=message)


def _validate_by_builtin_rules(manifest: Manifest, old: Manifest | None) -> ValidationResult:
    if old is None:
        verdict = builtin.check_create(manifest.body)
    else:
        new, before = _align_resource_versions(manifest.body, old.body)
        if problems := builtin.check_create(before).decode_problems:
            unreadable = f"{problems[0].path}: {problems[0].text}"
            raise InvalidInput(f"the stored version cannot be read: {unreadable}", path=old.source)
        verdict = builtin.check_update(new, before)
    undecodable = tuple(
        Complaint(field=problem.path, reason="FieldValueTypeInvalid", message=problem.text)
        for problem in verdict.decode_problems
    )
    return ValidationResult(
        complaints=(
            *_build_unknown_complaints(verdict.unknown_fields),
            *undecodable,
            *_build_complaints(verdict.errors),
        )
    )


def _build_admission_result(admission: Admission, *, warning: str | None) -> ValidationResult:
    refused: tuple[Complaint, ...] = ()
    if admission.bad_request is not None:
        refused = (Complaint(field="", reason="BadRequest", message=admission.bad_request),)
    # Unknown fields are errors here; what is left are rules that were broken before and are tolerated.
    tolerated = [text for text in admission.warnings if not text.startswith("unknown field")]
    return ValidationResult(
        complaints=(
            *_build_unknown_complaints(admission.unknown_fields),
            *refused,
            *_build_complaints(admission.errors),
        ),
        warnings=tuple(dict.fromkeys([warning, *tolerated] if warning else tolerated)),
    )


def _build_complaints(errors: Iterable[FieldError]) -> tuple[Complaint, ...]:
    """Once each: an API server repeats what it says of metadata on an update."""
    complaints = (Complaint(field=error.field, reason=str(error.type), message=error.message) for error in errors)
    return tuple(dict.fromkeys(complaints))


def _build_unknown_complaints(paths: Iterable[str]) -> tuple[Complaint, ...]:
    return tuple(Complaint(field=path, reason="FieldUnknown", message="unknown field") for path in paths)


def _align_resource_versions(new: dict[str, Any], old: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Files carry no resourceVersion; a server would refuse the update for that alone, and it is not the question."""
    if not all(isinstance(body.get("metadata"), dict) for body in (new, old)):
        return new, old
    stored = old["metadata"].get("resourceVersion") or "1"
    return (
        {**new, "metadata": {**new["metadata"], "resourceVersion": stored}},
        {**old, "metadata": {**old["metadata"], "resourceVersion": stored}},
    )
