"""The OpenAPI documents of the routes: one per group of callers, as the original service has them.

Operation ids are unique within a group only, so the groups cannot share a document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from plimsoll import __version__
from plimsoll.fleet.api.documents.base import Answer
from plimsoll.fleet.api.operations import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fastapi import FastAPI
    from pydantic import BaseModel

    from plimsoll.fleet.api.operations import Operation

_TITLES: Final = {
    Group.PUBLIC: "Plimsoll fleet manager",
    Group.AGENT: "Plimsoll fleet manager, routes of agents",
    Group.ADMIN: "Plimsoll fleet manager, routes of administrators",
}
_REFERENCE: Final = "#/components/schemas/{model}"
_BEARER: Final = {"Bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}}


def build_openapi(application: FastAPI, operations: Sequence[Operation], group: Group) -> dict[str, Any]:
    """The document of a group. That of the public routes has the open ones too."""
    wanted = [
        operation
        for operation in operations
        if operation.group is group or (group is Group.PUBLIC and operation.group is Group.OPEN)
    ]
    paths = {(operation.method, operation.full_path) for operation in wanted}
    routes = [
        route
        for route in application.routes
        if isinstance(route, APIRoute) and route.methods and (min(route.methods), route.path) in paths
    ]
    document = get_openapi(title=_TITLES[group], version=__version__, routes=routes)
    schemas: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
    for operation in wanted:
        described = document["paths"][operation.full_path][operation.method.lower()]
        described["responses"].pop("422", None)
        for status, model in operation.answers.items():
            if model is None:
                described["responses"][str(status)].pop("content", None)
        if operation.body is not None:
            described["requestBody"] = _describe_body(operation.body, schemas)
        if operation.group is not Group.OPEN:
            described["security"] = [{"Bearer": []}]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name in _list_answer_names(wanted):
        if name in schemas:
            _remove_nulls(schemas[name])
    document["components"]["securitySchemes"] = _BEARER
    _drop_titles(document["paths"])
    _drop_titles(schemas)
    return document


def _describe_body(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=_REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    reference = {"$ref": _REFERENCE.format(model=model.__name__)}
    return {"required": True, "content": {"application/json": {"schema": reference}}}


def _list_answer_names(operations: Iterable[Operation]) -> set[str]:
    """The schemas of answers: their values are omitted instead of null."""
    pending = [model for operation in operations for model in operation.answers.values() if model is not None]
    names: set[str] = set()
    for model in pending:
        definitions = model.model_json_schema(ref_template=_REFERENCE).get("$defs", {})
        names |= {model.__name__, *definitions}
        assert issubclass(model, Answer)
    return names


def _remove_nulls(schema: dict[str, Any]) -> None:
    for value in schema.get("properties", {}).values():
        choices = [choice for choice in value.get("anyOf", ()) if choice != {"type": "null"}]
        if len(choices) == 1:
            del value["anyOf"]
            value.update(choices[0])
            if value.get("default", "") is None:
                del value["default"]


def _drop_titles(value: Any) -> None:
    """Pydantic writes the name of every field again as its title."""
    if isinstance(value, dict):
        if isinstance(value.get("title"), str):
            del value["title"]
        for inner in value.values():
            _drop_titles(inner)
    elif isinstance(value, list):
        for inner in value:
            _drop_titles(inner)
