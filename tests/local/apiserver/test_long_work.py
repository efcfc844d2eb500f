"""No request holds the event loop: others are served while a large one is worked on."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.authentication import build_administrator
from plimsoll.local.apiserver.http_types import Request, Response
from plimsoll.local.apiserver.long_work import LARGEST_SHORT_BYTES, LongWork
from plimsoll.local.apiserver.run import Credentials, build_application
from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SeededEntropy
from tests.local.apiserver.builders import ADMIN, APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.application import Application

YAML = "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"


class HeldWork(Executor):
    """An executor that does its work only when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        result: Future[Any] = Future()

        def work() -> None:
            try:
                result.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the future carries it
                result.set_exception(error)

        self.waiting.append(work)
        return result


class Server:
    """An application in real time whose long work waits for the test."""

    def __init__(self) -> None:
        clock, entropy = RealClock(), SeededEntropy("long work")
        self.held = HeldWork()
        self.application: Application = build_application(
            Store.open(MemoryDriver(), clock=clock),
            clock=clock,
            entropy=entropy,
            credentials=Credentials(
                users={ADMIN: build_administrator()}, signing_key=b"a key for tests only, of 32 byte"
            ),
            long_work=LongWork(self.held),
        )

    async def ask(self, method: str, url: str, body: Any = None, *, media: str = JSON, accept: str = JSON) -> Response:
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": media, "Accept": accept}
        content = body if isinstance(body, bytes) else b"" if body is None else encoded(body)
        return await self.application.handle(Request.build(method, url, headers=headers, body=content))

    async def ask_and_work(
        self, method: str, url: str, body: Any = None, *, media: str = JSON, accept: str = JSON
    ) -> tuple[Response, int]:
        """The answer to a request, and how many of its steps were long work; others are served before each."""
        asked = asyncio.ensure_future(self.ask(method, url, body, media=media, accept=accept))
        steps = 0
        while not asked.done():
            for _ in range(5):
                await asyncio.sleep(0)
            if self.held.waiting:
                assert (await self.ask("GET", "/livez")).status == 200
                assert (await self.ask("GET", "/api/v1/namespaces/default")).status == 200
                steps += 1
                self.held.waiting.pop(0)()
        return asked.result(), steps


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}, "data": data}


def deployment(name: str, containers: int) -> dict[str, Any]:
    spec = {"containers": [{"name": f"c{number}", "image": "i"} for number in range(containers)]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def definition() -> dict[str, Any]:
    properties = {f"p{number}": {"type": "string", "default": "x"} for number in range(500)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


LONG = {f"k{number}": "v" * 50 for number in range(400)}
CONTAINERS = {"spec": {"template": {"spec": deployment("web", 700)["spec"]["template"]["spec"]}}}
COPIES = [{"op": "copy", "from": "/data", "path": f"/data/c{number}"} for number in range(3)]
REQUESTS: dict[str, tuple[Any, ...]] = {
    # name: method, path, body, media, status, the least number of steps in threads
    "create": ("POST", DEPLOYMENTS, deployment("new", 700), JSON, 201, 3),
    "update": ("PUT", f"{DEPLOYMENTS}/web", deployment("web", 700), JSON, 200, 4),
    "strategic merge patch": ("PATCH", f"{DEPLOYMENTS}/web", CONTAINERS, STRATEGIC, 200, 4),
    "merge patch": ("PATCH", f"{DEPLOYMENTS}/web", CONTAINERS, MERGE, 200, 4),
    "apply": ("PATCH", f"{DEPLOYMENTS}/applied?fieldManager=me", deployment("applied", 700), APPLY, 201, 3),
    "copies of a short JSON patch": ("PATCH", f"{MAPS}/small", COPIES, JSON_PATCH, 422, 2),
    "YAML": ("POST", MAPS, b"a: [" + b"1," * LARGEST_SHORT_BYTES + b"1]\n", YAML, 422, 3),
    "short YAML with aliases": ("POST", MAPS, b"a: &a [1]\nb: [*a, *a]\n", YAML, 422, 1),
    "delete options": ("DELETE", f"{MAPS}/small?dryRun=All", {"x": ["y"] * LARGEST_SHORT_BYTES}, JSON, 200, 1),
    "access review": (
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "x" * LARGEST_SHORT_BYTES}}},
        JSON,
        201,
        1,
    ),
    "definition": ("POST", DEFINITIONS, definition(), JSON, 201, 4),
    "small object of a large definition": (
        "POST",
        THINGS,
        {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}},
        JSON,
        201,
        3,
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_others_are_served_while_a_large_request_is_worked_on(name: str):
    method, path, body, media, status, steps = REQUESTS[name]

    async def scene() -> None:
        server = Server()
        assert (await server.ask("POST", MAPS, config_map("small", {"k": "v"}))).status == 201
        assert (await server.ask("POST", DEPLOYMENTS, deployment("web", 1))).status == 201
        if path == THINGS:
            await server.ask_and_work("POST", DEFINITIONS, definition())
        response, worked = await server.ask_and_work(method, path, body, media=media)
        assert response.status == status, response.body
        assert worked >= steps

    asyncio.run(scene())


@pytest.mark.parametrize("accept", [JSON, TABLE, YAML])
def test_others_are_served_while_a_large_list_is_printed(accept: str):
    async def scene() -> None:
        server = Server()
        for name in ("small", "medium", "large"):
            await server.ask("POST", MAPS, config_map(name, {"k": "v" * 8_000}))
        _, worked = await server.ask_and_work("GET", MAPS, accept=accept)
        assert worked == 1

    asyncio.run(scene())


def test_others_are_served_while_a_long_selector_is_tried():
    async def scene() -> None:
        server = Server()
        for number in range(20):
            await server.ask("POST", MAPS, config_map(f"m{number:02}", {}))
        selector = ",".join(f"k{number}!=v" for number in range(3_000))
        response, worked = await server.ask_and_work("GET", f"{MAPS}?limit=1&labelSelector={selector}")
        listed = json.loads(bytes(response.body))  # type: ignore[arg-type] # a list is no stream
        assert [item["metadata"]["name"] for item in listed["items"]] == ["m00"]
        assert listed["metadata"]["continue"]
        assert worked == 2

    asyncio.run(scene())


def test_a_small_request_does_not_wait_for_a_thread():
    async def scene() -> None:
        server = Server()
        await server.ask("POST", MAPS, config_map("small", {}))
        response, worked = await server.ask_and_work("PATCH", f"{MAPS}/small", {"data": {"a": "b"}}, media=MERGE)
        assert (response.status, worked) == (200, 0)

    asyncio.run(scene())


def test_an_object_that_the_store_would_refuse_is_refused_before_it_is_validated():
    async def scene() -> None:
        server = Server()
        await server.ask("POST", MAPS, config_map("small", {}))
        invalid = config_map("Not a name!", {f"k{number}": "v" * 1_000 for number in range(1_700)})
        response, worked = await server.ask_and_work("POST", MAPS, invalid)
        assert response.status == 500
        assert b"etcdserver: request is too large" in bytes(response.body)  # type: ignore[arg-type]
        assert worked == 2

    asyncio.run(scene())


def test_a_yaml_request_is_its_first_document():
    async def scene() -> None:
        server = Server()
        first = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: small}\n"
        response, _ = await server.ask_and_work("POST", MAPS, first + b"---\n" * 100_000 + b"]", media=YAML)
        assert response.status == 201

    asyncio.run(scene())


def test_aliases_that_multiply_are_refused():
    async def scene() -> None:
        server = Server()
        await server.ask("POST", MAPS, config_map("small", {}))
        levels = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 6))
        response, _ = await server.ask_and_work("POST", MAPS, ("a0: &a0 [x]\n" + levels).encode(), media=YAML)
        assert response.status == 400
        assert b"document contains excessive aliasing" in bytes(response.body)  # type: ignore[arg-type]

    asyncio.run(scene())
