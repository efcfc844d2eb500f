"""Compiles a custom resource definition into admission of its objects.

Call `compile_definition` once per definition and `get_version(...).admit_create` or `admit_update` per object. The
definition must be valid (`definition.checks`).
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.schema.admission.admission import CompiledVersion, Names
from plimsoll.objects.schema.definition.version_priority import build_deprecation_warning
from plimsoll.objects.schema.json_values import Refused, take_over
from plimsoll.objects.schema.structural import parse_schema


class CompiledDefinition:
    """A definition with its versions compiled."""

    def __init__(self, names: Names, versions: dict[str, CompiledVersion], *, storage_version: str) -> None:
        self.names = names
        self.versions = versions
        self.storage_version = storage_version

    def get_version(self, name: str) -> CompiledVersion:
        """A version by its name; KeyError for one the definition does not have."""
        return self.versions[name]


def compile_definition(crd: dict[str, Any]) -> CompiledDefinition:
    """Compile a valid CustomResourceDefinition; raises InvalidInput for what is none."""
    taken = take_over(crd)
    if isinstance(taken, Refused):
        raise InvalidInput(taken.problem, path=taken.path)
    try:
        spec = taken["spec"]
        names = Names(
            group=spec["group"],
            kind=spec["names"]["kind"],
            plural=spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
        )
        versions = {version["name"]: _compile_version(names, version, spec["versions"]) for version in spec["versions"]}
        storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InvalidInput("is not a usable CustomResourceDefinition; validate it first", path="spec") from error
    return CompiledDefinition(names, versions, storage_version=storage)


def _compile_version(names: Names, version: dict[str, Any], versions: list[dict[str, Any]]) -> CompiledVersion:
    path = f"spec.versions[{versions.index(version)}].schema.openAPIV3Schema"
    schema = parse_schema(version["schema"]["openAPIV3Schema"], path)
    warning = build_deprecation_warning(version, versions, group=names.group, kind=names.kind)
    return CompiledVersion(names, version, schema=schema, warning=warning)
