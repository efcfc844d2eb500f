"""The route of a request: a `ResourceRoute` from path and method, or none for paths of discovery.

The forms of "not found" are those of the recordings: a path below an unknown group, or an address that a custom
resource does not have, gets a plain page; anything unknown below a built-in group a Status.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.field_selectors import parse_field_selector
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import Attributes
from plimsoll.local.apiserver.http_types import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.apiserver.auth_types import User
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource

_OBJECT_VERBS: Final = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS: Final = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_SUBRESOURCE_VERBS: Final = {**_OBJECT_VERBS, "POST": "create"}
_READING_METHODS: Final = frozenset({"GET", "HEAD"})
_NOT_TRUE: Final = frozenset({"0", "false"})

PAGE_NOT_FOUND: Final = Response.from_text("404 page not found\n", status=404)


class ResourceRoute(NamedTuple):
    """A request for a resource. Empty texts where there is no namespace, name or subresource."""

    resource: ServedResource
    namespace: str
    name: str
    subresource: str
    verb: str


class _Address(NamedTuple):
    """A path below /api/v1 or /apis/group/version, taken apart.

    `is_nested` is whether the resource stands below a namespace. `namespace` alone does not show that: as in
    Kubernetes, a namespace lies in itself, and that is where roles for it are looked up.
    """

    plural: str
    namespace: str
    name: str
    rest: tuple[str, ...]
    watches: bool
    is_nested: bool


def parse_resource_path(path: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Group, version and the further segments of a path to a resource; none for every other path."""
    parts = [part for part in path.split("/") if part]
    if len(parts) > 2 and parts[0] == "api":
        return "", parts[1], tuple(parts[2:])
    if len(parts) > 3 and parts[0] == "apis":
        return parts[1], parts[2], tuple(parts[3:])
    return None


def is_watch(request: Request) -> bool:
    """Whether a request to read is for a watch: by its parameter, or by the deprecated path `/api/v1/watch/…`."""
    found = parse_resource_path(request.path)
    return _has_watch_parameter(request) or (found is not None and _is_watch_path(found[2]))


def read_attributes(user: User, request: Request) -> Attributes:
    """The attributes for authorisation, read from the path alone: a forbidden request must not reveal what exists."""
    found = _parse_address(request.path)
    if found is None:
        verb = request.method.lower()
        return Attributes(user=user, verb=verb, path=request.path, is_resource_request=False)
    group, version, address = found
    name, verb = address.name, _determine_verb(address, request)
    if verb in {"list", "watch", "deletecollection"} and not name:
        name = _find_selected_name(request)
    return Attributes(
        user=user,
        verb=verb,
        group=group,
        version=version,
        resource=address.plural,
        subresource="/".join(address.rest),
        namespace=address.namespace,
        name=name,
        path=request.path,
    )


def _determine_verb(address: _Address, request: Request) -> str:
    if address.watches:
        return "watch"
    if address.rest:
        return _SUBRESOURCE_VERBS.get(request.method, "")
    if address.name:
        return _OBJECT_VERBS.get(request.method, "")
    verb = _COLLECTION_VERBS.get(request.method, "")
    return "watch" if verb == "list" and _has_watch_parameter(request) else verb


def _find_selected_name(request: Request) -> str:
    """A list of one object by its name counts as a request for that object."""
    selector = request.get_parameter("fieldSelector")
    if not selector:
        return ""
    try:
        return parse_field_selector(selector).get_exact_value("metadata.name") or ""
    except InvalidSelector:
        return ""


def route(registry: ResourceRegistry, request: Request) -> ResourceRoute | Response | None:
    """The route of a request; a response if there is no such page; None for a path that is no resource's.

    Raises the 404 and 405 errors.
    """
    found = _parse_address(request.path)
    if found is None:
        return None
    group, version, address = found
    if group and group not in registry.list_groups():
        return PAGE_NOT_FOUND
    resource = registry.find(group, version, address.plural)
    if resource is None or _is_misplaced(resource, address):
        if _is_custom(registry, group):
            return PAGE_NOT_FOUND
        raise status_errors.unknown_resource()
    return _route(resource, address, request)


def _route(resource: ServedResource, address: _Address, request: Request) -> ResourceRoute:
    subresource = "/".join(address.rest)
    if subresource and address.watches:
        raise status_errors.unknown_resource()
    if subresource:
        part = resource.find_subresource(subresource)
        if part is None:
            if resource.is_custom:
                raise status_errors.not_found(address.name, group=resource.group, resource=resource.plural)
            raise status_errors.unknown_resource()
        allowed: Sequence[str] = part.verbs
    else:
        allowed = resource.verbs if address.name else _list_collection_verbs(resource, address)
    verb = _determine_verb(address, request)
    if verb not in allowed or (address.watches and request.method not in _READING_METHODS):
        raise status_errors.method_not_allowed()
    return ResourceRoute(resource, address.namespace, address.name, subresource, verb)


def _list_collection_verbs(resource: ServedResource, address: _Address) -> Sequence[str]:
    """A namespaced resource is read in all namespaces at once, but written in one."""
    if resource.namespaced and not address.namespace:
        return [verb for verb in resource.verbs if verb in {"list", "watch", "get"}]
    return resource.verbs


def _has_watch_parameter(request: Request) -> bool:
    # Any value but these two means yes, also an empty one.
    value = request.get_parameter("watch")
    return value is not None and value.lower() not in _NOT_TRUE


def _is_watch_path(segments: tuple[str, ...]) -> bool:
    return segments[0] == "watch" and len(segments) > 1


@lru_cache(maxsize=256)
def _parse_address(path: str) -> tuple[str, str, _Address] | None:
    """Group, version and address of a path to a resource. Every request asks twice, and many go to few places."""
    found = parse_resource_path(path)
    return None if found is None else (found[0], found[1], _read_segments(found[2]))


def _read_segments(segments: tuple[str, ...]) -> _Address:
    watches = _is_watch_path(segments)
    if watches:
        segments = segments[1:]
    namespace = segments[1] if segments[0] == "namespaces" and len(segments) > 1 else ""
    is_nested = bool(namespace) and len(segments) > 2 and segments[2] not in {"status", "finalize"}
    plural, *more = segments[2:] if is_nested else segments
    return _Address(plural, namespace, more[0] if more else "", tuple(more[1:]), watches, is_nested)


def _is_misplaced(resource: ServedResource, address: _Address) -> bool:
    if not resource.namespaced:
        return address.is_nested
    return bool(address.name) and not address.is_nested


def _is_custom(registry: ResourceRegistry, group: str) -> bool:
    return any(resource.is_custom for resource in registry if resource.group == group)
