"""The spec of a CustomResourceDefinition as values: read once, with every JSON type checked.

Also holds what the server's internal form makes of it: what all versions share counts as standing above them.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.objects.schema.definition.parts import DefinitionNames, read_names
from plimsoll.objects.schema.field_errors import child, index
from plimsoll.objects.schema.go_text import GoStruct
from plimsoll.objects.schema.json_values import is_same
from plimsoll.objects.schema.structural import StructuralSchema, parse_schema


class VersionSpec(Value):
    """One entry of spec.versions."""

    name: str
    served: bool
    storage: bool
    deprecated: bool
    deprecation_warning: str | None
    raw_schema: dict[str, Any] | None
    schema: StructuralSchema | None
    subresources: dict[str, Any] | None
    columns: list[Any]
    selectable_fields: list[Any]

    @property
    def has_status(self) -> bool:
        return (self.subresources or {}).get("status") is not None

    @property
    def scale(self) -> dict[str, Any] | None:
        return (self.subresources or {}).get("scale")

    def print_version(self, spec: DefinitionSpec) -> GoStruct:
        """A version as messages print it: with Go's names, and without the fields that all versions share."""
        own_schema = None if spec.shared_schema is not None or self.raw_schema is None else self.raw_schema
        return GoStruct(
            fields={
                "Name": self.name,
                "Served": self.served,
                "Storage": self.storage,
                "Deprecated": self.deprecated,
                "DeprecationWarning": self.deprecation_warning,
                "Schema": own_schema and GoStruct(fields={"OpenAPIV3Schema": own_schema}),
                "Subresources": None if spec.shares_subresources else self.subresources,
                "AdditionalPrinterColumns": None if spec.shares_columns else (self.columns or None),
                "SelectableFields": None if spec.shares_selectable_fields else (self.selectable_fields or None),
            }
        )


class DefinitionSpec(Value):
    """The spec of a definition."""

    group: str
    scope: str
    names: DefinitionNames
    versions: tuple[VersionSpec, ...]
    conversion: dict[str, Any]

    def _share(self, field: str) -> bool:
        return all(is_same(getattr(version, field), getattr(self.versions[0], field)) for version in self.versions)

    @property
    def shared_schema(self) -> StructuralSchema | None:
        """The schema all versions have, if they have the same."""
        return self.versions[0].schema if self.versions and self._share("raw_schema") else None

    @property
    def shares_subresources(self) -> bool:
        return bool(self.versions) and self._share("subresources")

    @property
    def shares_columns(self) -> bool:
        return bool(self.versions) and self._share("columns")

    @property
    def shares_selectable_fields(self) -> bool:
        return self.shared_schema is not None and self._share("selectable_fields")

    @property
    def any_status(self) -> bool:
        return any(version.has_status for version in self.versions)


def read_spec(spec: Any) -> DefinitionSpec:
    """Parse a spec. Raises InvalidInput for a wrong JSON type, which a real server could not decode."""
    known = _require_object(spec, "spec")
    versions = _list(known.get("versions"), "spec.versions")
    return DefinitionSpec(
        group=_require_text(known.get("group"), "spec.group"),
        scope=_require_text(known.get("scope"), "spec.scope"),
        names=read_names(known.get("names"), "spec.names"),
        versions=tuple(
            _read_version(version, index("spec.versions", position)) for position, version in enumerate(versions)
        ),
        conversion=_require_object(known.get("conversion"), "spec.conversion"),
    )


def _read_version(version: Any, path: str) -> VersionSpec:
    known = _require_object(version, path)
    place = child(child(path, "schema"), "openAPIV3Schema")
    raw_schema = _require_object(known.get("schema"), child(path, "schema")).get("openAPIV3Schema")
    subresources = known.get("subresources")
    if subresources is not None:
        for name, declared in _require_object(subresources, child(path, "subresources")).items():
            _require_object(declared, child(child(path, "subresources"), name))
    warning = known.get("deprecationWarning")
    return VersionSpec(
        name=_require_text(known.get("name"), child(path, "name")),
        served=_require_flag(known.get("served"), child(path, "served")),
        storage=_require_flag(known.get("storage"), child(path, "storage")),
        deprecated=_require_flag(known.get("deprecated"), child(path, "deprecated")),
        deprecation_warning=None if warning is None else _require_text(warning, child(path, "deprecationWarning")),
        raw_schema=None if raw_schema is None else _require_object(raw_schema, place),
        schema=None if raw_schema is None else parse_schema(raw_schema, place),
        subresources=subresources,
        columns=_require_list(known.get("additionalPrinterColumns"), child(path, "additionalPrinterColumns")),
        selectable_fields=_require_list(known.get("selectableFields"), child(path, "selectableFields")),
    )


def _require_object(value: Any, path: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("must be an object", path=path)
    return value or {}


def _list(value: Any, path: str) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise InvalidInput("must be an array", path=path)
    return value or []


def _require_list(value: Any, path: str) -> list[Any]:
    return [_require_object(item, index(path, position)) for position, item in enumerate(_list(value, path))]


def _require_text(value: Any, path: str) -> str:
    if value is not None and not isinstance(value, str):
        raise InvalidInput("must be a string", path=path)
    return value or ""


def _require_flag(value: Any, path: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidInput("must be a boolean", path=path)
    return bool(value)
