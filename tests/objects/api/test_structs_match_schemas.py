"""Every field of every wire struct is a property of the API type it mirrors, under that spelling and of that type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import inspect

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import ListMeta, MicroTime, WireObject
from plimsoll.objects.registry import KINDS
from tests.objects.api.recordings import schemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.api.resource import Resource

REF = "#/components/schemas/"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
UNKNOWN_FIELDS = "plimsoll.io/unknownFields"
"""Ours: decoding notes there what it left out."""
# What a msgspec type may stand for: the JSON type and, where the schema has one, the name it refers to.
SCALARS = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
    inspect.BytesType: "string/byte",
    inspect.DateTimeType: "Time",
    inspect.NoneType: "",
}


class SchemaComparison:
    """Goes through a struct and its schema side by side, and notes what does not agree and whom it met."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.met: set[type] = set()

    def compare(self, shape: inspect.Type, schema: dict[str, Any], path: str) -> None:
        schema, name = resolved(schema)
        shape = without_none(shape)
        if isinstance(shape, inspect.StructType):
            self._struct(shape, schema, f"{path}:{name}")
        elif isinstance(shape, inspect.VarTupleType) and schema.get("type") == "array":
            self.compare(shape.item_type, schema["items"], f"{path}[]")
        elif isinstance(shape, inspect.DictType) and "additionalProperties" in schema:
            self.compare(shape.value_type, schema["additionalProperties"], f"{path}{{}}")
        elif isinstance(shape, inspect.DictType) and isinstance(shape.value_type, inspect.AnyType):
            self._expect("object", schema.get("type"), path)
        elif meaning_of(shape) != meaning_in(schema, name):
            self._expect(meaning_of(shape), meaning_in(schema, name), path)

    def _struct(self, shape: inspect.StructType, schema: dict[str, Any], path: str) -> None:
        self.met.add(shape.cls)
        self._expect("object", schema.get("type"), path)
        called = getattr(shape.cls, "KIND", "") or shape.cls.__name__
        self._expect(called, path.rpartition(".")[2], path)
        properties = schema.get("properties", {})
        for field in shape.fields:
            if field.encode_name == UNKNOWN_FIELDS:
                continue
            if field.encode_name in properties:
                self.compare(field.type, properties[field.encode_name], f"{path}.{field.encode_name}")
            else:
                self.complaints.append(f"{path} has no {field.encode_name}")
            if field.required:
                self.complaints.append(f"{path}.{field.encode_name} has no default")

    def _expect(self, ours: Any, theirs: Any, path: str) -> None:
        if ours != theirs:
            self.complaints.append(f"{path} is {ours} here and {theirs} in the schema")


def resolved(schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    while "allOf" in schema:
        (schema,) = schema["allOf"]
    name = schema.get("$ref", "").removeprefix(REF)
    return (schemas()[name], name) if name else (schema, "")


def without_none(shape: inspect.Type) -> inspect.Type:
    if not isinstance(shape, inspect.UnionType):
        return shape
    rest = tuple(type_ for type_ in shape.types if not isinstance(type_, inspect.NoneType))
    return rest[0] if len(rest) == 1 else inspect.UnionType(rest)


def meaning_of(shape: inspect.Type) -> str:
    if isinstance(shape, inspect.UnionType):
        return " or ".join(sorted(meaning_of(type_) for type_ in shape.types))
    if isinstance(shape, inspect.CustomType):
        assert shape.cls is MicroTime
        return "MicroTime"
    return SCALARS.get(type(shape), type(shape).__name__)


def meaning_in(schema: dict[str, Any], name: str) -> str:
    short = name.rpartition(".")[2]
    if short in {"Time", "MicroTime"}:
        return short
    if short == "RawExtension":
        return "AnyType"
    if short == "Quantity":
        return "integer or number or string"
    if "oneOf" in schema:
        return " or ".join(sorted(alternative["type"] for alternative in schema["oneOf"]))
    return "string/byte" if schema.get("format") == "byte" else schema.get("type", "")


def component_of(resource: Resource) -> str:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    names = [name for name, schema in schemas().items() if wanted in schema.get("x-kubernetes-group-version-kind", ())]
    (name,) = names
    return name


def walked(struct: type[Wire], component: str) -> SchemaComparison:
    walk = SchemaComparison()
    walk.compare(inspect.type_info(struct), {"$ref": REF + component}, "")
    return walk


def wire_structs(base: type[Wire] = Wire) -> Iterator[type[Wire]]:
    for cls in base.__subclasses__():
        yield cls
        yield from wire_structs(cls)


@pytest.mark.parametrize("resource", list(KINDS), ids=lambda kind: kind.full_name)
def test_every_field_is_a_property_of_the_api_type(resource: Resource):
    assert walked(resource.struct, component_of(resource)).complaints == []


def test_the_metadata_of_lists_is_checked_too():
    assert walked(ListMeta, LIST_META).complaints == []


def test_no_struct_is_out_of_reach_of_the_check():
    met = {struct for kind in KINDS for struct in walked(kind.struct, component_of(kind)).met} | {ListMeta, WireObject}
    modules = {struct.__module__ for struct in met}
    assert {wire_struct for wire_struct in wire_structs() if wire_struct.__module__ in modules} - met == set()


class BadStructName(Wire):
    pod_ips: tuple[str, ...] = ()
    pod_ip_address: str = ""
    start_time: str = ""
    phase: int = 0


def test_the_check_bites():
    complaints = walked(BadStructName, "io.k8s.api.core.v1.PodStatus").complaints
    path = ":io.k8s.api.core.v1.PodStatus"
    assert complaints == [
        f"{path} is BadStructName here and PodStatus in the schema",
        f"{path}.podIPs[] is string here and object in the schema",
        f"{path} has no podIPAddress",
        f"{path}.startTime is string here and Time in the schema",
        f"{path}.phase is integer here and string in the schema",
    ]
