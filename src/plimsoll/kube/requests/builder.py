"""Builds requests: paths, queries, bodies.

Every mistake that shows before sending is an `InvalidInput` here: an unregistered struct, a
namespaced kind without a namespace, a name that would lead to another path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_path_segment_problems
from plimsoll.core.values import Wire
from plimsoll.kube.requests.options import DRY_RUN
from plimsoll.kube.transport import JSON, Request
from plimsoll.objects.api.meta import MicroTime, WireObject
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.codec.decoding import encode_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.kube.requests.options import ApplyOptions, ClientSettings, DeleteOptions, Selection, WriteOptions
    from plimsoll.objects.registry import Kinds

    Query = Sequence[tuple[str, str]]
    Body = Wire | Mapping[str, Any] | bytes

T = TypeVar("T", bound=WireObject)

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Calls:
    """Builds the calls of one client."""

    def __init__(self, settings: ClientSettings, kinds: Kinds) -> None:
        self._settings = settings
        self._kinds = kinds

    def get_resource(self, of: type[T] | Resource) -> Resource:
        if isinstance(of, Resource):
            return of
        resource = self._kinds.find_by_struct(of)
        if resource is None:
            raise InvalidInput(f"{of.__name__} is in no table of kinds: register it, or give its Resource")
        return resource

    def build_path(self, resource: Resource, name: str, *, namespace: str, subresource: str = "") -> str:
        """The path of one object, or of its subresource."""
        _check_segment(name, path="name")
        path = resource.build_path(self._choose_namespace(resource, namespace), name)
        if subresource:
            _check_segment(subresource, path="subresource")
            path = f"{path}/{subresource}"
        return path

    def build_collection_path(self, resource: Resource, *, namespace: str) -> str:
        """The path for creating objects; a namespaced kind needs a namespace."""
        return resource.build_path(self._choose_namespace(resource, namespace))

    def build_list_path(self, resource: Resource, selection: Selection) -> str:
        """The path for lists and watches; without a namespace, all namespaces."""
        if selection.namespace:
            _check_segment(selection.namespace, path="namespace")
        return resource.build_path(selection.namespace)

    def _choose_namespace(self, resource: Resource, namespace: str) -> str:
        # A namespace for a cluster-scoped kind is ignored, as kubectl ignores its -n.
        if resource.namespaced:
            _check_segment(namespace, path="namespace")
        return namespace

    def get(self, path: str, query: Query = (), *, accept: str = JSON) -> Request:
        return self._call("GET", path, query, headers={"Accept": accept})

    def watch(self, path: str, query: Query) -> Request:
        call = self._call("GET", path, (("watch", "true"), *query), headers={"Accept": JSON})
        return call._replace(is_stream=True)

    def build_post(self, path: str, body: bytes, options: WriteOptions) -> Request:
        return self._call("POST", path, self._write_query(options), headers=_build_content_headers(JSON), body=body)

    def patch(self, path: str, body: bytes, content_type: str, options: WriteOptions | ApplyOptions) -> Request:
        return self._call(
            "PATCH", path, self._write_query(options), headers=_build_content_headers(content_type), body=body
        )

    def delete(self, path: str, options: DeleteOptions) -> Request:
        body = options.body
        if not body:
            return self._call("DELETE", path, headers={"Accept": JSON})
        data = encode_json({"apiVersion": "v1", "kind": "DeleteOptions", **body})
        query = [DRY_RUN] if options.is_dry_run else []
        return self._call("DELETE", path, query, headers=_build_content_headers(JSON), body=data)

    def _write_query(self, options: WriteOptions | ApplyOptions) -> list[tuple[str, str]]:
        query = [("fieldManager", options.get("field_manager", "") or self._settings.field_manager)]
        if validation := options.get("field_validation", ""):
            query.append(("fieldValidation", validation))
        if options.get("force", False):
            query.append(("force", "true"))
        if options.get("dry_run", False):
            query.append(DRY_RUN)
        return query

    def _call(
        self, method: str, path: str, query: Query = (), *, headers: Mapping[str, str], body: bytes = b""
    ) -> Request:
        return Request(
            method=method,
            path=path,
            query=tuple(query),
            headers={**headers, "User-Agent": self._settings.user_agent},
            body=body,
            timeout_s=self._settings.timeout_s,
        )


def encode_body(resource: Resource, body: Body, *, name: str = "") -> bytes:
    """Encode an object to send, with its kind and `name` where they are absent. Bytes are sent unchanged."""
    if isinstance(body, bytes):
        return body
    if isinstance(body, WireObject):
        metadata = body.metadata if body.metadata.name else msgspec.structs.replace(body.metadata, name=name)
        kind = {"api_version": body.api_version or resource.api_version, "kind": body.kind or resource.kind}
        return encode_object(msgspec.structs.replace(body, metadata=metadata, **kind))
    if isinstance(body, Wire):
        raise InvalidInput(f"{type(body).__name__} is a part of an object, not an object")
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    if name:
        whole["metadata"] = {"name": name, **(whole.get("metadata") or {})}
    return encode_json(whole)


def get_namespace(body: Body) -> str:
    """The namespace in the metadata of an object."""
    if isinstance(body, WireObject):
        return body.metadata.namespace
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if isinstance(metadata, Wire):
        return str(getattr(metadata, "namespace", ""))
    return str(metadata.get("namespace") or "") if isinstance(metadata, Mapping) else ""


def encode_patch_body(body: Wire | Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes) -> bytes:
    """Encode a patch."""
    return body if isinstance(body, bytes) else encode_json(body)


def encode_json(value: Any) -> bytes:
    """JSON of plain values, wire structs and times in any mixture."""
    return _ENCODER.encode(dict(value) if isinstance(value, Mapping) else value)


def _encode_value(value: Any) -> Any:
    if isinstance(value, MicroTime):
        return value.to_text()
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidInput(f"{type(value).__name__} has no form in JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_value)


# Names that could be more than one plain segment; only these need the whole rule.
_SUSPICIOUS: Final = re.compile(r"[/%]|^\.\.?$")


def _build_content_headers(content_type: str) -> dict[str, str]:
    return {"Accept": JSON, "Content-Type": content_type}


def _check_segment(value: str, *, path: str) -> None:
    if value and not _SUSPICIOUS.search(value):
        return
    problems = find_path_segment_problems(value) if value else ["must not be empty"]
    if problems:
        raise InvalidInput(f"{value!r} {'; '.join(problems)}" if value else problems[0], path=path)
