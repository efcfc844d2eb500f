"""Sends what `fuzzing` makes to a fresh server and collects what must not be."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance.exchanges import ClientRequests
from tests.conformance.fuzzing import Fuzzer, is_allowed, operations
from tests.conformance.recordings import API_SERVER_GROUPS, by_id, golden
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conformance.exchanges import Reply
    from tests.conformance.fuzzing import FuzzedRequest, Operation

Json = dict[str, Any]

_JSON = {"Content-Type": "application/json"}
_OBJECTS = (
    ("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "fuzz"}}),
    ("/api/v1/namespaces/fuzz/serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": "default"}}),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", by_id("crd-001").body),
)
# A server that is asked for everything at random fills up; a fresh one now and then keeps requests meaningful.
_REQUESTS_A_SERVER = 5_000
# What was deleted at random is made again.
_REQUESTS_AN_OBJECT = 250


class FuzzFinding(NamedTuple):
    request: FuzzedRequest
    answer: str


def published_operations(client: ClientRequests) -> tuple[Operation, ...]:
    """What `/openapi/v3` says is served."""
    index = client.send("GET", "/openapi/v3")
    paths = _json(index)["paths"]
    urls = [str(item["serverRelativeURL"]).split("?")[0] for _, item in sorted(paths.items())]
    return operations([_json(client.send("GET", url)) for url in urls])


def _json(reply: Reply) -> Any:
    """The index is JSON under a text content type, as recorded."""
    return json.loads(reply.raw)


@cache
def _accepted() -> dict[tuple[str, str], list[Json]]:
    """Recorded bodies of creates, by apiVersion and kind."""
    found: dict[tuple[str, str], list[Json]] = {}
    for group in API_SERVER_GROUPS:
        for recorded in golden(group):
            if recorded.status == 201 and isinstance(recorded.body, dict) and "kind" in recorded.body:
                found.setdefault((recorded.body["apiVersion"], recorded.body["kind"]), []).append(recorded.body)
    return found


def _make_objects(client: ClientRequests, published: Sequence[Operation]) -> None:
    """An object `a` and `b` of every kind that was ever created: requests for them have something to break."""
    for operation in published:
        group = f"{operation.kind['group']}/" if operation.kind.get("group") else ""
        bodies = _accepted().get((f"{group}{operation.kind.get('version')}", str(operation.kind.get("kind"))), ())
        if operation.method != "POST" or "{name}" in operation.path or not bodies:
            continue
        for name in ("a", "b"):
            body = {**bodies[0], "metadata": {**bodies[0].get("metadata", {}), "name": name}}
            client.send("POST", operation.path.replace("{namespace}", "fuzz"), headers=_JSON, body=body)


def fuzzed(count: int, *, seed: int) -> list[FuzzFinding]:
    """The offences among `count` requests."""
    chance = random.Random(seed)
    offences: list[FuzzFinding] = []
    for begun in range(0, count, _REQUESTS_A_SERVER):
        offences += _on_one_server(min(_REQUESTS_A_SERVER, count - begun), chance)
    return offences


def _on_one_server(count: int, chance: random.Random) -> Sequence[FuzzFinding]:
    offences: list[FuzzFinding] = []
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        client = ClientRequests(run, server.transport, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        for path, body in _OBJECTS:
            client.send("POST", path, headers=_JSON, body=body)
        run.advance_by(5)
        published = published_operations(client)
        fuzzer = Fuzzer(published, chance, good=_accepted())
        for number in range(count):
            if number % _REQUESTS_AN_OBJECT == 0:
                _make_objects(client, published)
            request = fuzzer.request()
            reply = client.send(
                request.method, request.path, query=request.query, headers=request.headers, body=request.body
            )
            if not is_allowed(reply.status, reply.body) or b"Traceback" in reply.raw:
                offences.append(FuzzFinding(request, f"{reply.status} {reply.raw[:500]!r}"))
    return offences
