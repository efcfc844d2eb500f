"""The discovery handler: the document of a path that names no resource.

Paths below a group version (`/api/v1/pods`) are not discovery and give None.
"""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.discovery import aggregated, unaggregated
from plimsoll.local.apiserver.discovery.document_cache import get_document_cache
from plimsoll.local.apiserver.discovery.health import check_health, list_health_paths
from plimsoll.local.apiserver.discovery.openapi_documents import build_address
from plimsoll.local.apiserver.discovery.server_version import build_version_info
from plimsoll.local.apiserver.http_types import JSON, PROTOBUF, TEXT, YAML, Response
from plimsoll.local.apiserver.presentation.encoding import encode
from plimsoll.local.apiserver.presentation.negotiation import Clause, MediaForm, not_acceptable, parse_clauses
from plimsoll.local.apiserver.status_errors import method_not_allowed, unknown_resource

if TYPE_CHECKING:
    from plimsoll.local.apiserver.discovery.document_cache import Document, DocumentCache
    from plimsoll.local.apiserver.discovery.groups import Versions
    from plimsoll.local.apiserver.http_types import Request
    from plimsoll.local.apiserver.server import Server

_PRETTY: Final = MediaForm(pretty=True)
_MEDIA: Final = {JSON: "json", YAML: "yaml"}
_AGGREGATED: Final = "aggregated "
_ALWAYS: Final = ("/api", "/apis", "/apis/", "/openapi/v3", "/openapi/v3/", "/version")


def handle_discovery(server: Server, request: Request) -> Response | None:
    """The answer to a request for no resource; None for a path below a group version."""
    steps = [step for step in request.path.split("/") if step]
    if _is_below_group_version(steps):
        return None
    found = check_health(request, server.store)
    if found is not None:
        return found
    if request.method not in {"GET", "HEAD"} and steps[:1] in (["version"], ["api"], ["apis"], ["openapi"]):
        raise method_not_allowed()
    published = get_document_cache(server.registry)
    if steps[:2] == ["openapi", "v3"]:
        return _answer_openapi(server, request, published, "/".join(steps[2:]))
    return _find_document(request, published, steps) or Response.from_text("404 page not found\n", status=404)


def _is_below_group_version(steps: list[str]) -> bool:
    return (steps[:1] == ["api"] and len(steps) > 2) or (steps[:1] == ["apis"] and len(steps) > 3)


def _find_document(request: Request, published: DocumentCache, steps: list[str]) -> Response | None:
    match steps:
        case []:
            return Response(status=200, body=encode(_PRETTY, {"paths": _list_paths(published)}))
        case ["version"]:
            return Response(status=200, body=encode(_PRETTY, build_version_info()))
        case ["api" | "apis" as root]:
            return _answer_groups(request, published, root)
        case ["api", version]:
            return _answer_resources(request, published, "", version)
        case ["apis", group]:
            versions = published.groups.get(group)
            return None if versions is None else _answer_plain(request, unaggregated.group(group, versions))
        case ["apis", group, version]:
            return _answer_resources(request, published, group, version)
        case _:
            return None


def _list_paths(published: DocumentCache) -> list[str]:
    served = {
        f"/{build_address(group, version)}" for group, versions in published.groups.items() for version in versions
    }
    groups = {f"/apis/{group}" for group in published.groups if group}
    return sorted({*_ALWAYS, *served, *groups, *list_health_paths()})


def _answer_groups(request: Request, published: DocumentCache, root: str) -> Response:
    form = _negotiate_form(request, aggregated_too=True)
    groups: dict[str, Versions] = {
        name: item for name, item in published.groups.items() if (root == "apis") == bool(name)
    }
    if form.startswith(_AGGREGATED):
        version = form.removeprefix(_AGGREGATED)
        made = published.get_document(f"{root} {version}", lambda: aggregated.build_discovery_list(groups, version))
        headers = (("Cache-Control", "public"), ("Etag", f'"{made.hash}"'), ("Vary", "Accept"))
        return _answer_cached(request, made, aggregated.build_content_type(version), headers)
    if root == "apis":
        return _answer_plain(request, unaggregated.build_group_list(groups))
    return _answer_plain(request, unaggregated.build_api_versions(request.get_header("host") or "127.0.0.1:6443"))


def _answer_resources(request: Request, published: DocumentCache, group: str, version: str) -> Response | None:
    versions = published.groups.get(group)
    if versions is None:
        return None
    if version not in versions:
        if any(resource.is_custom for listed in versions.values() for resource in listed):
            return None
        raise unknown_resource()
    return _answer_plain(request, unaggregated.build_resource_list(group, version, versions[version]))


def _negotiate_form(request: Request, *, aggregated_too: bool = False) -> str:
    """`json`, `yaml` or, for `/api` and `/apis`, `aggregated v2`: the first that the Accept header allows."""
    header = request.get_header("accept")
    for clause in parse_clauses(header) if header.strip() else parse_clauses("*/*"):
        form = _find_clause_form(clause)
        if form is not None and (aggregated_too or not form.startswith(_AGGREGATED)):
            return form
    raise not_acceptable((JSON, YAML, PROTOBUF))


def _find_clause_form(clause: Clause) -> str | None:
    media = next((media for media_type, media in _MEDIA.items() if clause.covers(media_type)), None)
    group, version, kind = (clause.parameters.get(name, "") for name in ("g", "v", "as"))
    if media is None or not (group or version or kind):
        return media
    known = (group, kind) == (aggregated.GROUP, aggregated.KIND) and version in aggregated.VERSIONS
    return f"{_AGGREGATED}{version}" if known and media == "json" else None


def _answer_plain(request: Request, value: Any) -> Response:
    form = MediaForm(media=_negotiate_form(request))
    return Response(status=200, body=encode(form, value), content_type=form.content_type)


def _answer_openapi(server: Server, request: Request, published: DocumentCache, name: str) -> Response:
    if not any(clause.covers(JSON) for clause in parse_clauses(request.get_header("accept") or "*/*")):
        return Response(status=406, body=b"", content_type=TEXT)
    if not name:
        # A real server lets Go guess the type of the index, and Go guesses text.
        return Response(status=200, body=published.get_openapi_index().body, content_type=TEXT)
    made = published.get_openapi(name)
    if made is None:
        return Response(status=404, body=b"", content_type=TEXT)
    requested_hash = request.get_parameter("hash")
    headers = [("Etag", f'"{made.hash}"'), ("Vary", "Accept")]
    if requested_hash:
        if requested_hash != made.hash:
            return _redirect(f"/openapi/v3/{name}?hash={made.hash}")
        until = format_datetime(server.clock.now() + timedelta(days=365), usegmt=True)
        headers += [("Cache-Control", "public, immutable"), ("Expires", until)]
    return _answer_cached(request, made, JSON, tuple(headers))


def _redirect(url: str) -> Response:
    body = f'<a href="{url}">Moved Permanently</a>.\n\n'.encode()
    return Response(status=301, body=body, content_type="text/html; charset=utf-8", headers=(("Location", url),))


def _answer_cached(
    request: Request, made: Document, content_type: str, headers: tuple[tuple[str, str], ...]
) -> Response:
    """The document, or 304 for a client that has it."""
    known = {item.strip().removeprefix("W/") for item in request.get_header("if-none-match").split(",")}
    if f'"{made.hash}"' in known or "*" in known:
        return Response(status=304, body=b"", content_type=content_type, headers=headers)
    return Response(status=200, body=made.body, content_type=content_type, headers=headers)
