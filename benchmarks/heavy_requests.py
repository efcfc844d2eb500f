"""The longest that `/livez` waits while the API server serves the heaviest requests it accepts, against an idle server.

Each request is as large as the server's limits allow and costs it the most per byte. The clients run beside the server
on the same machine. A request that the server refuses counts as well: what it costs to find out is what counts.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.https_clients import Connection, Server, apiserver

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

IDLE_S = 3.0
POLL_S = 0.01
MOST_S = 1.0
CLIENTS = 8
CONTAINERS = 60_000
LISTED = 20_000
NAMESPACE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MAPS = f"{NAMESPACE}/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/bench.example/v1/namespaces/default/things"
WIDES = "/apis/bench.example/v1/namespaces/default/wides"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY, YAML = "application/json-patch+json", "application/apply-patch+yaml", "application/yaml"


class Heavy(NamedTuple):
    """One request: its name in the table, method, path, media type and body."""

    name: str
    method: str
    path: str
    media: str = "application/json"
    body: bytes = b""
    accept: str = "application/json"


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as data, apiserver(data) as server, asyncio.Runner() as runner:
        runner.run(prepare(server))
        idle_s, _ = runner.run(worst_livez(server, lambda: asyncio.sleep(IDLE_S, "")))
        yield row("/livez of an idle server", idle_s)
        for heavy in heavy_requests():
            yield runner.run(stall(server, heavy))


async def stall(server: Server, heavy: Heavy) -> dict[str, Any]:
    asking = await server.connected()
    started_s = time.perf_counter()
    worst_s, status = await worst_livez(server, partial(send, asking, heavy))
    took_s = time.perf_counter() - started_s
    await asking.close()
    note = f"{status} after {took_s:.1f} s"
    return row(f"/livez during {heavy.name}", worst_s, target="< 1000", met=worst_s < MOST_S, note=note)


def row(name: str, worst_s: float, *, target: str = "", met: bool | None = None, note: str = "") -> dict[str, Any]:
    return {"name": name, "value": worst_s * 1e3, "unit": "ms", "target": target, "met": met, "note": note}


async def worst_livez(server: Server, work: Callable[[], Awaitable[str]]) -> tuple[float, str]:
    """The longest answer of `/livez` while `work` goes on, and what `work` gives."""
    polling = await server.connected()
    working = asyncio.ensure_future(work())
    worst_s = 0.0
    while not working.done():
        started_s = time.perf_counter()
        await polling.ask("GET", "/livez")
        worst_s = max(worst_s, time.perf_counter() - started_s)
        await asyncio.sleep(POLL_S)
    await polling.close()
    return worst_s, working.result()


async def send(connection: Connection, heavy: Heavy) -> str:
    head = (
        f"{heavy.method} {heavy.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {connection.token}\r\n"
        f"Accept: {heavy.accept}\r\nContent-Type: {heavy.media}\r\nContent-Length: {len(heavy.body)}\r\n\r\n"
    )
    connection.writer.write(head.encode() + heavy.body)
    answered = await connection.head()
    length = int(answered.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    body = await connection.reader.readexactly(length)
    status = answered.split(b" ")[1].decode()
    return status if status.startswith("2") else f"{status} {json.loads(body).get('message', '')[:60]}"


async def prepare(server: Server) -> None:
    """The objects that the requests are about."""
    connections = [await server.connected() for _ in range(CLIENTS)]
    first = connections[0]
    while b'"default"' not in await first.ask("GET", f"{NAMESPACE}/serviceaccounts"):
        pass
    await first.ask("POST", DEPLOYMENTS, deployment("web", 1))
    await first.ask("POST", DEPLOYMENTS, deployment("wide", 2_000))
    await first.ask("POST", MAPS, config_map("text", {"a": "x" * 1000}))
    await first.ask("POST", DEFINITIONS, DEFINITION)

    async def fill(connection: Connection, share: int) -> None:
        for number in range(share, LISTED, CLIENTS):
            labels = {"app": f"app-{number % 100}", "number": str(number)}
            body = config_map(f"listed-{number:06d}", {"text": "x" * 100}, labels=labels)
            await connection.ask("POST", MAPS, body)

    await asyncio.gather(*(fill(connection, share) for share, connection in enumerate(connections)))
    for connection in connections:
        await connection.close()


def config_map(name: str, data: dict[str, str], labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}, "data": data}


def deployment(name: str, containers: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": f"c{n}", "image": "i"} for n in range(containers)]},
            },
        },
    }


def definition(plural: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.bench.example"},
        "spec": {
            "group": "bench.example",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


def named_items(**properties: Any) -> dict[str, Any]:
    """A list of items with different names."""
    items = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, **properties}}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items}


DEFINITION = definition(
    "things",
    "Thing",
    {
        "texts": {"type": "array", "items": {"type": "string", "pattern": "^(a+)+$", "maxLength": 100}},
        "unique": named_items(port={"type": "integer", "default": 80, "minimum": 1}),
        "filled": named_items(text={"type": "string", "default": "x" * 1_000}),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
)
WIDE = b'{"apiVersion":"bench.example/v1","kind":"Wide","metadata":{"name":"w"},"spec":{"p1":"y"}}'


def heavy_requests() -> Iterator[Heavy]:
    yield from large_objects()
    yield from odd_texts()
    yield from json_patches()
    yield from custom_objects()
    yield from large_lists()


def large_objects() -> Iterator[Heavy]:
    containers = [{"name": f"c{number}", "image": "i"} for number in range(CONTAINERS)]
    template = encoded({"spec": {"template": {"spec": {"containers": containers}}}})
    web, wide = f"{DEPLOYMENTS}/web", f"{DEPLOYMENTS}/wide"
    yield Heavy("a strategic patch of 60,000 containers", "PATCH", web, STRATEGIC, template)
    yield Heavy("a merge patch of 60,000 containers", "PATCH", web, MERGE, template)
    for count in (CONTAINERS, 5_000):
        body = encoded(deployment(f"created-{count}", count))
        yield Heavy(f"a create with {count:,} containers", "POST", DEPLOYMENTS, body=body)
        name = f"applied-{count}"
        path = f"{DEPLOYMENTS}/{name}?fieldManager=bench&force=true"
        yield Heavy(f"an apply of {count:,} containers", "PATCH", path, APPLY, encoded(deployment(name, count)))
    small = encoded({"metadata": {"labels": {"changed": "yes"}}})
    yield Heavy("a small patch of 2,000 containers", "PATCH", wide, STRATEGIC, small)
    pod = {"metadata": {"name": "wide"}, "spec": deployment("wide", 3_000)["spec"]["template"]["spec"]}
    yield Heavy("a pod of 3,000 containers", "POST", f"{NAMESPACE}/pods", body=encoded(pod))
    rules = [{"apiGroups": ["*"], "resources": [f"r{n}"], "verbs": ["get"]} for n in range(15_000)]
    role = {"metadata": {"name": "large"}, "rules": rules}
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    yield Heavy("a role of 15,000 rules", "POST", path, body=encoded(role))
    wrong = config_map("Wrong!", {f"!bad{n}": "" for n in range(80_000)})
    yield Heavy("80,000 validation errors", "POST", MAPS, body=encoded(wrong))
    unknown = encoded(config_map("unknown", {}) | {f"unknown{n}": n for n in range(100_000)})
    yield Heavy("100,000 unknown fields", "POST", MAPS, body=unknown)
    yield Heavy("100,000 unknown fields, strict", "POST", f"{MAPS}?fieldValidation=Strict", body=unknown)


def odd_texts() -> Iterator[Heavy]:
    yield Heavy("3 MB of YAML separators", "POST", MAPS, YAML, b"---\n" * 780_000)
    yield Heavy("3 MB of YAML lists", "POST", MAPS, YAML, b"- a\n" * 780_000)
    pairs = "".join(f'k{n}: "v"\n' for n in range(200_000)).encode()
    yield Heavy("3 MB of YAML keys", "POST", MAPS, YAML, b"a: 1\n" + pairs)
    levels = (b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 6))
    aliases = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(levels)
    yield Heavy("YAML aliases of aliases", "POST", MAPS, YAML, aliases)
    yield Heavy("YAML keys that repeat", "POST", MAPS, YAML, b"a: 1\n" * 6_000)
    deep = b'{"a":' * 400_000 + b"1" + b"}" * 400_000
    yield Heavy("400,000 levels of JSON", "POST", MAPS, body=deep)
    yield Heavy("1,500,000 JSON numbers", "POST", MAPS, body=b"[" + b"1," * 1_500_000 + b"1]")
    repeated = b'{"kind":"ConfigMap",' + b",".join(b'"k%d":{"a":1,"a":2}' % n for n in range(120_000)) + b"}"
    yield Heavy("120,000 repeated JSON keys", "POST", MAPS, body=repeated)


def json_patches() -> Iterator[Heavy]:
    copies = [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(12)]
    grows = [{"op": "add", "path": "/data", "value": {f"k{n}": "v" for n in range(1_000)}}]
    text = f"{MAPS}/text"
    yield Heavy("nested JSON patch copies", "PATCH", text, JSON_PATCH, encoded([*grows, *copies]))
    adds: list[Any] = [{"op": "add", "path": "/metadata/finalizers", "value": []}]
    adds += [{"op": "add", "path": "/metadata/finalizers/0", "value": f"a.b/{n}"} for n in range(9_999)]
    yield Heavy("10,000 JSON patch operations", "PATCH", text, JSON_PATCH, encoded(adds))
    containers = deployment("wide", 2_000)["spec"]["template"]["spec"]["containers"]
    tests = [{"op": "test", "path": "/spec/template/spec/containers", "value": containers}] * 20
    yield Heavy("JSON patch tests of a list", "PATCH", f"{DEPLOYMENTS}/wide", JSON_PATCH, encoded(tests))


def custom_objects() -> Iterator[Heavy]:
    def thing(name: str, **spec: Any) -> bytes:
        metadata = {"name": name}
        return encoded({"apiVersion": "bench.example/v1", "kind": "Thing", "metadata": metadata, "spec": spec})

    yield Heavy("40,000 patterns that do not match", "POST", THINGS, body=thing("t", texts=["a" * 60 + "b"] * 40_000))
    for count in (100_000, 30_000):
        named = [{"name": f"n{n}"} for n in range(count)]
        yield Heavy(f"{count:,} custom list items with defaults", "POST", THINGS, body=thing("t", unique=named))
    free: dict[str, Any] = {f"k{n}": {"a": {}} for n in range(60_000)}
    yield Heavy("60,000 free custom fields", "POST", THINGS, body=thing("t", free=free))
    filled = [{"name": f"n{n}"} for n in range(40_000)]
    yield Heavy("40,000 items with a default of 1 KB each", "POST", THINGS, body=thing("t", filled=filled))
    properties = {f"p{n}": {"type": "string", "default": "x"} for n in range(15_000)}
    yield Heavy(
        "a definition of 15,000 properties",
        "POST",
        DEFINITIONS,
        body=encoded(definition("wides", "Wide", properties)),
    )
    yield Heavy("an object of a definition of 15,000 properties", "POST", WIDES, body=WIDE)
    yield Heavy("the OpenAPI document of that definition", "GET", "/openapi/v3/apis/bench.example/v1")


def large_lists() -> Iterator[Heavy]:
    yield Heavy("a list of 20,000 objects", "GET", MAPS)
    for name, accept in (("a table", TABLE), ("a YAML list", YAML), ("metadata", METADATA)):
        yield Heavy(f"{name} of 20,000 objects", "GET", MAPS, accept=accept)
    selector = "%2C".join(f"app%21%3Dx{n}" for n in range(10_000))
    yield Heavy("a selector of 10,000 terms over 20,000 objects", "GET", f"{MAPS}?labelSelector={selector}")
    selector = "%2C".join(f"%21k{n}" for n in range(10_000))
    yield Heavy("a selector of 10,000 absent keys over 20,000 objects", "GET", f"{MAPS}?labelSelector={selector}")
    selector = "app+in+%28" + "%2C".join(f"x{n}" for n in range(10_000)) + "%29"
    yield Heavy("a selector of 10,000 values over 20,000 objects", "GET", f"{MAPS}?labelSelector={selector}")
    yield Heavy("the deletion of 20,000 objects", "DELETE", f"{MAPS}?labelSelector=app")


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
