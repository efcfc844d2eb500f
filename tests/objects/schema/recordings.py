"""A tiny store that answers recorded requests with the schema façade alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plimsoll.objects.schema.api import CompiledDefinition, compile_definition
from plimsoll.objects.schema.definition.checks import validate_definition
from plimsoll.objects.schema.definition.defaults import prepare

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

GOLDEN = Path(__file__).parents[2] / "fixtures" / "kubernetes" / "golden"
DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RESOURCE_PATH = re.compile(
    r"/apis/(?P<group>[^/]+)/(?P<version>[^/]+)(/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)"
    r"(/(?P<name>[^/]+)(/(?P<subresource>[^/]+))?)?"
)

Json = dict[str, Any]


def recorded(group: str) -> list[Json]:
    lines = (GOLDEN / f"{group}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


class Answer:
    def __init__(self, *, status: int, body: Json, errors: list[FieldError] | None = None, warnings: Any = ()) -> None:
        self.status = status
        self.body = body
        self.errors = errors or []
        self.warnings = list(warnings)


class Store:
    """Definitions and objects by name. Knows nothing of HTTP but methods and paths."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {}
        self.compiled: dict[tuple[str, str], CompiledDefinition] = {}
        self.objects: dict[tuple[str, str], Json] = {}

    def define(self, crd: Json, *, established: bool = True) -> None:
        """Put a definition in place without asking whether it is valid."""
        name = crd["metadata"]["name"]
        stored = prepare(crd, self.definitions.get(name))
        if established:
            stored["status"]["conditions"] = [{"type": "Established", "status": "True"}]
        self.definitions[name] = stored
        spec = stored["spec"]
        self.compiled[spec["group"], spec["names"]["plural"]] = compile_definition(stored)

    def answer(self, request: Json) -> Answer:
        if request["path"].startswith(DEFINITIONS_PATH):
            return self._answer_definition(request)
        found = _RESOURCE_PATH.fullmatch(request["path"])
        assert found is not None
        return self._answer_resource(request, found)

    def _answer_definition(self, request: Json) -> Answer:
        old = self.definitions.get(request["path"].removeprefix(f"{DEFINITIONS_PATH}/"))
        crd = merged(old, request["body"]) if request["method"] == "PATCH" else without_identity(request["body"])
        errors = validate_definition(crd, old)
        if errors:
            return Answer(status=422, body=crd, errors=errors)
        created = prepare(crd, old)
        self.define(crd)
        return Answer(status=201 if old is None else 200, body=created)

    def _answer_resource(self, request: Json, found: re.Match[str]) -> Answer:
        definition = self.compiled[found["group"], found["plural"]]
        version = definition.get_version(found["version"])
        key = (found["plural"], found["name"] or "")
        validation = request["query"].get("fieldValidation", "Warn")
        if request["method"] == "GET":
            warnings = [version.deprecation_warning] if version.deprecation_warning else []
            return Answer(status=200, body=version.present(self.objects[key]), warnings=warnings)
        if request["method"] == "POST":
            body = request["body"]
            if found["namespace"]:
                body = {**body, "metadata": {**body["metadata"], "namespace": found["namespace"]}}
            admission = version.admit_create(body, field_validation=validation)
        else:
            old = version.present(self.objects[key])
            body = without_identity(request["body"]) if request["method"] == "PUT" else patched(old, request)
            subresource: Literal["status"] | None = "status" if found["subresource"] == "status" else None
            admission = version.admit_update(body, old, subresource=subresource, field_validation=validation)
        if admission.bad_request is not None:
            return Answer(status=400, body=admission.build_status() or {})
        if admission.errors:
            return Answer(status=422, body=admission.object, errors=list(admission.errors))
        self.objects[found["plural"], admission.object["metadata"]["name"]] = admission.object
        status = 201 if request["method"] == "POST" else 200
        return Answer(status=status, body=admission.object, warnings=admission.warnings)


def without_identity(body: Json) -> Json:
    """A body without the uid and time of the recording, which this store never gave."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in {"uid", "creationTimestamp"}}
    return {**body, "metadata": metadata}


def patched(old: Json, request: Json) -> Json:
    if "json-patch" not in request["headers"]["Content-Type"]:
        return merged(old, request["body"])
    result = json.loads(json.dumps(old))
    for operation in request["body"]:
        assert operation["op"] == "replace"
        *way, last = operation["path"].strip("/").split("/")
        target = result
        for step in way:
            target = target[step]
        target[last] = operation["value"]
    return result


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
