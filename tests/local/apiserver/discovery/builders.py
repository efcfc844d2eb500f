"""A server to ask, with the built-in resources and those of some definitions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from plimsoll.local.apiserver.discovery import handle_discovery
from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry
from tests.local.apiserver.presentation.recordings import FIXTURES, custom_resources

if TYPE_CHECKING:
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

NOW = datetime(2026, 11, 15, 4, 30, 0, tzinfo=UTC)
_LIST = "as=APIGroupDiscoveryList"
_GROUP = "application/json;g=apidiscovery.k8s.io"
ALL_AGGREGATED = f"{_GROUP};v=v2;{_LIST},{_GROUP};v=v2beta1;{_LIST},application/json"


def server_with(*definitions: Json, problem: str = "") -> Server:
    registry = ResourceRegistry(list_builtin_resources())
    for definition in definitions:
        serve(registry, definition)
    clock, store = SimpleNamespace(now=lambda: NOW), SimpleNamespace(problem=problem)
    return cast("Server", SimpleNamespace(registry=registry, clock=clock, store=store))


def serve(registry: ResourceRegistry, definition: Json) -> None:
    registry.serve(definition["metadata"]["name"], custom_resources(definition))


def definition(plural: str = "things", *versions: str, group: str = "kc.com", **version: Any) -> Json:
    """A definition whose first version is the stored one; `version` adds to each of them."""
    named = versions or ("v1",)
    kind = plural.removesuffix("s").capitalize()
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": item, "served": True, "storage": item == named[0], **version} for item in named],
        },
    }


def ask(server: Server, url: str, *, accept: str = "application/json", method: str = "GET", **headers: str) -> Response:
    given = {"Accept": accept, **{name.replace("_", "-"): value for name, value in headers.items()}}
    found = handle_discovery(server, Request.build(method, url, headers=given))
    assert found is not None, f"{url} is left to others"
    return found


def document(server: Server, url: str, **more: Any) -> Json:
    found = ask(server, url, **more)
    assert (found.status, type(found.body)) == (200, bytes)
    decoded: Json = json.loads(cast("bytes", found.body))
    return decoded


def recorded(name: str) -> Json:
    found: Json = json.loads((FIXTURES / "discovery" / f"{name}.json").read_bytes())
    return found
