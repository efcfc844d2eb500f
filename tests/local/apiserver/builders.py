"""A whole API server in memory, in virtual time, with one administrator: asked and answered without awaiting."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from plimsoll.local.apiserver.admission import Admission
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authentication import ServiceAccountTokens, TokenAuthenticator, build_administrator
from plimsoll.local.apiserver.authorization import RbacAuthorizer
from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.resources.registry import ResourceRegistry
from plimsoll.local.apiserver.server import Server
from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.storage.drivers.interface import Driver

START = datetime(2026, 1, 1, tzinfo=UTC)
ADMIN, GUEST = "administrator", "guest"
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Reply(NamedTuple):
    """An answer, read."""

    status: int
    body: Any
    warnings: tuple[str, ...] = ()
    content_type: str = JSON

    @property
    def message(self) -> str:
        return str(self.body.get("message"))


def new_server(clock: Clock, *, driver: Driver | None = None) -> Server:
    entropy = SeededEntropy("world")
    store = Store.open(driver or MemoryDriver(), clock=clock)
    tokens = ServiceAccountTokens(b"a key for tests only, of 32 byte", entropy=entropy)
    authorizer = RbacAuthorizer.build(store)
    people = {ADMIN: build_administrator(), GUEST: User(name="guest", groups=("system:authenticated",))}
    return Server(
        store=store,
        registry=ResourceRegistry(list_builtin_resources()),
        clock=clock,
        entropy=entropy,
        authenticator=TokenAuthenticator.build(
            store, static=people, service_accounts=tokens, clock=clock, authorizer=authorizer
        ),
        authorizer=authorizer,
        admission=Admission(store=store, clock=clock, entropy=entropy, authorizer=authorizer),
        tokens=tokens,
    )


class ApiServerHarness:
    """Holds the server and its time. `with ApiServerHarness() as world:`."""

    def __init__(self, *, driver: Driver | None = None) -> None:
        self.run = VirtualRun(start=START)
        self.server = new_server(self.run.clock, driver=driver)
        self.application = Application(self.server)

    def __enter__(self) -> Self:
        self.run.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.run.__exit__(*error)  # type: ignore[arg-type]

    def ask(
        self,
        method: str,
        url: str,
        body: Any = None,
        *,
        content: str = JSON,
        token: str = ADMIN,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and read the whole answer; a watch is read to its end."""
        return self.run.run_until(self._asked(_request(method, url, body, content, {**_as(token), **(headers or {})})))

    async def ask_inside(self, method: str, url: str) -> Reply:
        """The same from a task of the run."""
        return await self._asked(_request(method, url, None, JSON, _as(ADMIN)))

    async def _asked(self, request: Request) -> Reply:
        return await read(await self.application.handle(request))

    def watch(self, url: str) -> OpenWatch:
        return OpenWatch(self, _request("GET", url, None, JSON, _as(ADMIN)))

    # ---- shorthands

    def namespace(self, name: str = "here") -> str:
        reply = self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert reply.status == 201, reply
        account = self.ask("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        assert account.status == 201, account
        return f"/api/v1/namespaces/{name}"

    def made(self, url: str, body: Any) -> Any:
        reply = self.ask("POST", url, body)
        assert reply.status == 201, reply
        return reply.body


class OpenWatch:
    """A watch that goes on while other things happen."""

    def __init__(self, world: ApiServerHarness, request: Request) -> None:
        self._world = world
        self.lines: list[bytes] = []
        self.has_ended = False
        world.run.spawn(self._read(request))
        world.run.settle()

    async def _read(self, request: Request) -> None:
        answer = await self._world.application.handle(request)
        assert not isinstance(answer.body, bytes), answer
        async for chunk in answer.body:
            self.lines += chunk.splitlines()
        self.has_ended = True

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @property
    def story(self) -> list[tuple[str, str]]:
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events]


def _as(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _request(method: str, url: str, body: Any, content: str, headers: Mapping[str, str]) -> Request:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"Accept": JSON, "User-Agent": "tester/1.0", **headers}
    if body is not None:
        named["Content-Type"] = content
    return Request.build(method, url, headers=named, body=data)


async def read(answer: Response) -> Reply:
    if isinstance(answer.body, bytes):
        data = answer.body
    else:
        data = b"[" + b",".join([line async for chunk in answer.body for line in chunk.splitlines()]) + b"]"
    warnings = tuple(value for name, value in answer.headers if name == "Warning")
    text = data.decode()
    body = json.loads(text) if answer.content_type == JSON else text
    return Reply(answer.status, body, warnings, answer.content_type)


# ---- builders


def config_map(name: str = "a", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def pod(name: str = "p", *, node: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "nginx:1.27"}]
    whole = {"containers": containers, **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def deployment(name: str = "d", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx:1.27"}]}}
    whole = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def definition(plural: str = "widgets", *, kind: str = "Widget", versions: Any = None, **spec: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    }
    one = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.com"},
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions or [one],
            **spec,
        },
    }
