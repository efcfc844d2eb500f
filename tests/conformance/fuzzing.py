"""Requests made from the server's own OpenAPI documents, and worse ones made from those.

A seed gives the same requests every time: `random.Random` is enough, nothing here is a secret. What may be answered
with 5xx is what a recorded server answered so; everything else above 499 is a defect of ours.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

Json = dict[str, Any]

# The errors that Go reports without a type, as the recordings show them.
ALLOWED_5XX: Final = (
    (500, re.compile(r"failed to create typed (patch|live) object \(.*", re.DOTALL)),  # apply-018 apply-031 crd-059
    # Not recorded; the same step fails when the applied value has the right type and no meaning (a time, say).
    (500, re.compile(r"failed to convert (merged|new) object to .*", re.DOTALL)),
    (500, re.compile(r"resourceVersion should not be set on objects to be created")),  # create-024
    (500, re.compile(r"This pod has more than one PodDisruptionBudget, .*")),  # eviction-013
    (500, re.compile(r"map: map\[.*\] does not contain declared merge key: .*", re.DOTALL)),  # patch-039
    (500, re.compile(r"unknown patch type: .*", re.DOTALL)),  # patch-040
    (504, re.compile(r"Timeout: Too large resource version: \d+, current: \d+")),  # read-068
    (500, re.compile(r'(resourceVersion: Invalid value: ".*": )?strconv\.ParseUint: parsing ".*": .*', re.DOTALL)),
    # Not recorded; what apiextensions-apiserver says of an object without the field its definition names.
    (500, re.compile(r'Internal error occurred: the spec replicas field ".*" does not exist', re.DOTALL)),
    (500, re.compile(r"\[?target\.(name|kind): .*", re.DOTALL)),  # subresources-024
    # Not recorded; what etcd says of more than 1.5 MiB, and the API server passes on.
    (500, re.compile(r"etcdserver: request is too large")),
    # Not recorded; what the allocators of addresses and ports say when there is none left.
    (500, re.compile(r"Internal error occurred: failed to allocate a (serviceIP|nodePort): range is full")),
)

METHODS: Final = ("get", "post", "put", "patch", "delete")
_PATCHES: Final = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_NAMES: Final = (
    "a",
    "b",
    "web-0",
    "kube-root-ca.crt",
    "default",
    "X_y",
    "a" * 260,
    "%2e%2e",
    "ü",
    "",
    "widgets.ex.com",
)
_NAMESPACES: Final = (*["fuzz"] * 12, "default", "kube-system", "none-such")
_TEXTS: Final = ("", "a", "a/b", "1", "100m", "1Gi", "-1", "None", "null", "true", "\u0000", "\ud7ff", "x" * 5_000)
_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    1e308,
    0.5,
    "",
    [],
    {},
    [[]],
    [None],
    {"": {}},
)
_QUERY: Final = {
    "limit": ("1", "0", "-1", "x", "99999999999999999999"),
    "continue": ("x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvYVx1MDAwMCJ9", "e30"),
    "labelSelector": (
        "a",
        "a=b",
        "a in (b,c)",
        "!a",
        "a=b=c",
        "a>1",
        ",,",
        "(" * 50,
        ",".join(f"k{n}!=v" for n in range(300)),
    ),
    "fieldSelector": ("metadata.name=a", "metadata.name!=a", "spec.x=1", "=", "a=b,c"),
    "resourceVersion": ("0", "1", "abc", "-1", "99999999999999999999999"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "Foo"),
    "watch": ("true", "1", "false", "maybe"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false", "x"),
    "dryRun": ("All", "Some", ""),
    "fieldManager": ("f", "x" * 129, "\n"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "Foo"),
    "force": ("true", "x"),
    "gracePeriodSeconds": ("0", "5", "-1", "x"),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "Foo"),
    "orphanDependents": ("true", "x"),
    "pretty": ("true", "x"),
}
_ACCEPTS: Final = (
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
    "application/yaml",
    "*/*",
    "text/html",
    "application/vnd.kubernetes.protobuf,application/json",
    ";;;,",
)
_DEEPEST: Final = 6
_BODIES: Final = (
    b"",
    b"{}",
    b"null",
    b"[]",
    b"{",
    b'"x"',
    b"\xff\xfe",
    b"k8s\x00\x0a\xff",
    b"[" * 5_000,
    b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    b"a: &a [1]\nb: [" + b"*a," * 1_000 + b"]",
)


class Operation(NamedTuple):
    """One method of one published path, with the schema of its body if it takes one."""

    method: str
    path: str
    schema: Json | None
    schemas: Json
    kind: Json


class FuzzedRequest(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def operations(documents: Sequence[Json]) -> tuple[Operation, ...]:
    """Every operation that OpenAPI documents publish."""
    return tuple(operation for document in documents for operation in _operations(document))


def _operations(document: Json) -> Iterator[Operation]:
    schemas = document.get("components", {}).get("schemas", {})
    for path, item in document.get("paths", {}).items():
        for method in METHODS:
            if method in item:
                content = item[method].get("requestBody", {}).get("content", {})
                schema = next((item.get("schema") for item in content.values()), None)
                kind = item[method].get("x-kubernetes-group-version-kind", {})
                yield Operation(method.upper(), path, schema, schemas, kind)


class Fuzzer:
    """An endless stream of requests. `good` are bodies by apiVersion and kind that a real server accepted."""

    def __init__(
        self, published: Sequence[Operation], chance: random.Random, *, good: Mapping[tuple[str, str], Sequence[Json]]
    ) -> None:
        self._published = published
        self._chance = chance
        self._good = good

    def request(self) -> FuzzedRequest:
        operation = self._chance.choice(self._published)
        if operation.method == "DELETE" and self._chance.random() < 0.7:  # or there would soon be nothing left
            operation = self._chance.choice(self._published)
        method = (
            operation.method if self._chance.random() < 0.95 else self._chance.choice(("FOO", "HEAD", "POST", "PUT"))
        )
        path = self._path(operation.path)
        name = path.split("/")[-1] if operation.path.endswith("{name}") else ""
        return FuzzedRequest(method, path, self._query(), self._headers(method), self._body(operation, name=name))

    def _path(self, template: str) -> str:
        def filled(match: re.Match[str]) -> str:
            if match[1] == "namespace":
                return self._chance.choice(_NAMESPACES)
            return self._chance.choice(_NAMES[:2] if self._chance.random() < 0.8 else _NAMES)

        path = re.sub(r"\{(\w+)\}", filled, template)
        if self._chance.random() < 0.03:
            path += self._chance.choice(("/", "/x", "//", "/status", "/scale", "/..", "/\u0000"))
        return path

    def _query(self) -> dict[str, str]:
        names = self._chance.sample(sorted(_QUERY), k=self._chance.choice((0, 0, 0, 1, 1, 2, 4)))
        query = {name: self._parameter(name) for name in names}
        query.setdefault("fieldManager", "fuzzer")
        if "watch" in query:
            query["timeoutSeconds"] = "1"
        elif self._chance.random() < 0.02:
            query["timeoutSeconds"] = self._chance.choice(("x", "0", "-1"))
        return query

    def _parameter(self, name: str) -> str:
        """Mostly one that is fine; those stand first."""
        values = _QUERY[name]
        return values[0] if self._chance.random() < 0.6 else self._chance.choice(values)

    def _headers(self, method: str) -> dict[str, str]:
        json_type = "application/json"
        content_type = self._chance.choice(_PATCHES) if method == "PATCH" else json_type
        if self._chance.random() < 0.05:
            content_type = self._chance.choice(
                ("text/plain", "application/yaml", "", "application/vnd.kubernetes.protobuf")
            )
        accept = json_type if self._chance.random() < 0.7 else self._chance.choice(_ACCEPTS)
        return {"Content-Type": content_type, "Accept": accept}

    # ---- bodies

    def _body(self, operation: Operation, *, name: str) -> bytes:
        if operation.schema is None or self._chance.random() < 0.02:
            return self._chance.choice(_BODIES)
        value = self._base(operation)
        if isinstance(value, dict):
            value = self._named(value, operation, name)
        for _ in range(self._chance.choice((0, 0, 1, 1, 3))):
            value = self._mutated(value)
        text = json.dumps(value)
        if self._chance.random() < 0.02:
            text = text[: self._chance.randrange(len(text))]
        return text.encode("utf-8", "surrogatepass")

    def _base(self, operation: Operation) -> Any:
        good = self._good.get((_api_version(operation.kind), str(operation.kind.get("kind"))))
        if good and self._chance.random() < 0.6:
            return self._chance.choice(good)
        assert operation.schema is not None
        return self._like(operation.schema, operation, depth=0)

    def _named(self, value: Json, operation: Operation, name: str) -> Any:
        if operation.method == "PATCH" and self._chance.random() < 0.3:
            return self._json_patch()
        if operation.method == "PATCH" and self._chance.random() < 0.5:
            part = self._chance.choice(sorted(value) or ["spec"])
            value = {part: value.get(part)}
        metadata: Any = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
        named = {**value, "metadata": {**metadata, "name": name or self._chance.choice(_NAMES[:4])}}
        if operation.kind:
            named |= {"apiVersion": _api_version(operation.kind), "kind": operation.kind.get("kind")}
        return named

    def _json_patch(self) -> Any:
        paths = (
            "/metadata/labels",
            "/metadata/name",
            "/spec",
            "/spec/replicas",
            "/data/a",
            "/x/y/z",
            "",
            "/spec/-",
            "a",
        )
        return [
            {
                "op": self._chance.choice(("add", "remove", "replace", "move", "copy", "test", "frob")),
                "path": self._chance.choice(paths),
                "from": self._chance.choice(paths),
                "value": self._chance.choice(_VALUES),
            }
            for _ in range(self._chance.choice((0, 1, 1, 2, 5)))
        ]

    def _like(self, schema: Json, operation: Operation, *, depth: int) -> Any:
        """A value a schema describes, more or less."""
        if self._chance.random() < 0.02:
            return self._chance.choice(_VALUES)
        if "allOf" in schema:
            schema = schema["allOf"][0]
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[-1]
            return self._like(operation.schemas.get(name, {}), operation, depth=depth)
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            return self._object(schema, operation, depth)
        if kind == "array":
            count = 0 if depth >= _DEEPEST else self._chance.choice((0, 1, 1, 2))
            return [self._like(schema.get("items", {}), operation, depth=depth + 1) for _ in range(count)]
        return self._scalar(schema)

    def _object(self, schema: Json, operation: Operation, depth: int) -> Any:
        properties = schema.get("properties", {})
        if "additionalProperties" in schema and isinstance(schema["additionalProperties"], dict):
            items = schema["additionalProperties"]
            return {name: self._like(items, operation, depth=depth + 1) for name in ("a", "cpu")[: depth < _DEEPEST]}
        required = set(schema.get("required", ()))
        likely = 0.0 if depth >= _DEEPEST else 0.9 if depth == 0 else 0.35
        wanted = [name for name in properties if name in required or self._chance.random() < likely]
        return {name: self._like(properties[name], operation, depth=depth + 1) for name in wanted if depth < 12}

    def _scalar(self, schema: Json) -> Any:
        if schema.get("enum"):
            return self._chance.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "integer":
            return self._chance.choice((0, 1, 3, 80, -1, 2**31))
        if kind == "number":
            return self._chance.choice((0, 0.5, -1))
        if kind == "boolean":
            return self._chance.random() < 0.5
        if schema.get("format") == "date-time":
            return self._chance.choice(("2026-01-01T00:00:00Z", "yesterday", "2026-01-01T00:00:00.000000Z"))
        return self._chance.choice(("a", "b", "nginx:1.27", *_TEXTS))

    def _mutated(self, value: Any) -> Any:
        """`value` with one thing wrong somewhere inside."""
        if isinstance(value, dict) and value and self._chance.random() < 0.8:
            name = self._chance.choice(sorted(value))
            if self._chance.random() < 0.2:
                return {**{key: item for key, item in value.items() if key != name}, f"{name}x": value[name]}
            return {**value, name: self._mutated(value[name])}
        if isinstance(value, list) and value and self._chance.random() < 0.8:
            place = self._chance.randrange(len(value))
            return [*value[:place], self._mutated(value[place]), *value[place:]]
        return self._chance.choice((*_VALUES, *_TEXTS))


def _api_version(kind: Json) -> str:
    return f"{kind['group']}/{kind.get('version')}" if kind.get("group") else str(kind.get("version"))


def is_allowed(status: int, body: Any) -> bool:
    """Whether a recorded server gives such an answer too."""
    if status < 500:
        return True
    message = body.get("message", "") if isinstance(body, dict) else ""
    return any(status == code and pattern.fullmatch(message) for code, pattern in ALLOWED_5XX)
