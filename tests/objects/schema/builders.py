"""Definitions and objects with everything filled in but what a test is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema.api import compile_definition
from plimsoll.objects.schema.structural import StructuralSchema, parse_schema

if TYPE_CHECKING:
    from plimsoll.objects.schema.admission.admission import CompiledVersion

Json = dict[str, Any]


def schema_of(schema: Json) -> StructuralSchema:
    return parse_schema(schema, "schema")


def an_object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def a_definition(schema: Json | None = None, **changes: Any) -> Json:
    """A valid definition of Things in example.com; `changes` go into its only version."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema if schema is not None else {"type": "object"}},
        **changes,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


def a_version(spec: Json, *, status: Json | None = None, **changes: Any) -> CompiledVersion:
    """A compiled version whose `spec` has the given schema."""
    properties = {"spec": spec} if status is None else {"spec": spec, "status": status}
    return compile_definition(a_definition(an_object(**properties), **changes)).get_version("v1")


def a_thing(spec: Any = None, **changes: Any) -> Json:
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, **changes}
    return thing if spec is None else {**thing, "spec": spec}
