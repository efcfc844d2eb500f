"""Who judges an object: the built-in rules, the definition of its kind, or the rules for definitions themselves.

`plimsoll validate` asks here. Strict as kubectl is: a field that nobody knows is an error, because it is a typing
mistake more often than not.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.objects import builtin
from plimsoll.objects.manifests import Manifest, read_manifests
from plimsoll.objects.schema.definition_checks import validate_definition
from plimsoll.objects.schema.definitions import CompiledDefinition, compile_definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.schema.admission import Admission
    from plimsoll.objects.schema.field_errors import FieldError

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Complaint(Value):
    """One thing wrong: where, what kind of wrong, and the sentence."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Judgement(Value):
    """What is wrong with an object, and what is only worth a word."""

    complaints: tuple[Complaint, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.complaints


class Judge:
    """Knows the built-in kinds, our own definitions, and those it is taught."""

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, str], CompiledDefinition] = {}
        self._knows_shipped = False

    def learn(self, crd: dict[str, Any]) -> None:
        """Take up a definition; one that is not valid is left alone (judging it says why)."""
        if validate_definition(crd):
            return
        compiled = compile_definition(crd)
        self._definitions[compiled.names.group, compiled.names.kind] = compiled

    def judge(self, manifest: Manifest, old: Manifest | None = None) -> Judgement:
        """A creation, or with `old` an update of it."""
        if not manifest.api_version or not manifest.kind:
            missing = "kind" if manifest.api_version else "apiVersion"
            return Judgement(
                complaints=(Complaint(field=missing, reason="FieldValueRequired", message="Required value"),)
            )
        before = old.body if old is not None else None
        if (manifest.api_version, manifest.kind) == DEFINITION:
            return Judgement(complaints=_told(validate_definition(manifest.body, before)))
        if builtin.is_builtin(manifest.api_version, manifest.kind):
            return _by_builtin_rules(manifest.body, before)
        return self._by_definition(manifest, before)

    def _by_definition(self, manifest: Manifest, old: dict[str, Any] | None) -> Judgement:
        group, _, version = manifest.api_version.rpartition("/")
        definition = self._definition_of(group, manifest.kind)
        if definition is None:
            message = (
                f"{manifest.kind} in {manifest.api_version} is not known; give its CustomResourceDefinition with -f"
            )
            return Judgement(complaints=(Complaint(field="kind", reason="NotFound", message=message),))
        served = [name for name, one in definition.versions.items() if one.served]
        if version not in served:
            message = f"{manifest.kind} is not served in version {version!r}; there is {', '.join(served)}"
            return Judgement(complaints=(Complaint(field="apiVersion", reason="NotFound", message=message),))
        judged = definition.version(version)
        if old is None:
            admission = judged.admit_create(manifest.body, field_validation="Warn")
        else:
            new, before = _with_one_resource_version(manifest.body, old)
            admission = judged.admit_update(new, before, field_validation="Warn")
        return _by_admission(admission, warning=judged.deprecation_warning)

    def _definition_of(self, group: str, kind: str) -> CompiledDefinition | None:
        """What was taught goes before what is shipped, and what is shipped is read only if it is asked for."""
        if (group, kind) not in self._definitions and not self._knows_shipped:
            self._knows_shipped = True
            shipped = (compile_definition(manifest.body) for manifest in shipped_definitions())
            self._definitions = {(one.names.group, one.names.kind): one for one in shipped} | self._definitions
        return self._definitions.get((group, kind))


def shipped_definitions() -> Iterable[Manifest]:
    """The definitions of our own resources, as they are installed into a cluster."""
    for file in sorted(files("plimsoll.objects").joinpath("crds").iterdir(), key=lambda found: found.name):
        if file.name.endswith(".yaml"):
            yield from read_manifests(file.read_bytes(), source=file.name)


def _by_builtin_rules(body: dict[str, Any], old: dict[str, Any] | None) -> Judgement:
    verdict = builtin.check_create(body) if old is None else builtin.check_update(body, old)
    undecodable = tuple(
        Complaint(field=problem.path, reason="FieldValueTypeInvalid", message=problem.text)
        for problem in verdict.decode_problems
    )
    return Judgement(complaints=(*_unknown(verdict.unknown_fields), *undecodable, *_told(verdict.errors)))


def _by_admission(admission: Admission, *, warning: str | None) -> Judgement:
    refused: tuple[Complaint, ...] = ()
    if admission.bad_request is not None:
        refused = (Complaint(field="", reason="BadRequest", message=admission.bad_request),)
    return Judgement(
        complaints=(*_unknown(admission.unknown_fields), *refused, *_told(admission.errors)),
        warnings=(warning,) if warning else (),
    )


def _told(errors: Iterable[FieldError]) -> tuple[Complaint, ...]:
    """Once each: an API server repeats what it says of metadata on an update."""
    told = (Complaint(field=error.field, reason=str(error.type), message=error.message) for error in errors)
    return tuple(dict.fromkeys(told))


def _unknown(paths: Iterable[str]) -> tuple[Complaint, ...]:
    return tuple(Complaint(field=path, reason="FieldUnknown", message="unknown field") for path in paths)


def _with_one_resource_version(new: dict[str, Any], old: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Files carry no resourceVersion; a server would refuse the update for that alone, and it is not the question."""
    if not all(isinstance(body.get("metadata"), dict) for body in (new, old)):
        return new, old
    stored = old["metadata"].get("resourceVersion") or "1"
    return (
        {**new, "metadata": {**new["metadata"], "resourceVersion": stored}},
        {**old, "metadata": {**old["metadata"], "resourceVersion": stored}},
    )
