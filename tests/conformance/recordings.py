"""What a real Kubernetes 1.34 API server answered, as values: `tests/fixtures/kubernetes/golden` and `discovery`.

Read by the replay and by the fuzzers. Never changes a recording: what has to be masked or put in place of a recorded
value is in `masks` and `substitutions`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kubernetes"

# The recordings that concern the API server alone, in the order in which they were made.
API_SERVER_GROUPS = (
    "create",
    "read",
    "update",
    "patch",
    "apply",
    "subresources",
    "delete",
    "eviction",
    "fieldvalidation",
    "errors",
    "auth",
    "table",
    "watch",
    "expired",
    "crd",
    "provisioningrequest",
    "lease",
    "events",
)

# What these show is the work of the scheduler and of the controllers; they are replayed with the local cluster.
LOCAL_CLUSTER_GROUPS = ("scheduler", "controllers", "nodelifecycle")


class RecordedExchange(NamedTuple):
    """One request and its answer."""

    id: str
    title: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    status: int
    response_headers: dict[str, Any]
    response: Any
    auth: str
    note: str


@cache
def golden(group: str) -> tuple[RecordedExchange, ...]:
    """The lines of one file, in their order: later ones depend on earlier ones."""
    lines = (FIXTURES / "golden" / f"{group}.jsonl").read_text().splitlines()
    return tuple(_recorded(json.loads(line)) for line in lines)


@cache
def by_id(recorded_id: str) -> RecordedExchange:
    group = recorded_id.rsplit("-", 1)[0]
    return next(recorded for recorded in golden(group) if recorded.id == recorded_id)


@cache
def discovery() -> tuple[RecordedExchange, ...]:
    """One GET each; the name of the file is the id."""
    files = sorted((FIXTURES / "discovery").glob("*.json"))
    return tuple(_discovered(path.stem, json.loads(path.read_text())) for path in files)


def _recorded(line: dict[str, Any]) -> RecordedExchange:
    return RecordedExchange(
        id=line["id"],
        title=line["title"],
        method=line["method"],
        path=line["path"],
        query=line.get("query") or {},
        headers=line.get("headers") or {},
        body=line.get("body"),
        status=line["status"],
        response_headers=line.get("response_headers") or {},
        response=line.get("response"),
        auth=line.get("auth", ""),
        note=line.get("note", ""),
    )


def _discovered(name: str, document: dict[str, Any]) -> RecordedExchange:
    return RecordedExchange(
        id=f"discovery/{name}",
        title=document["path"],
        method="GET",
        path=document["path"],
        query=dict(parse_qsl(document.get("query", ""), keep_blank_values=True)),
        headers={"Accept": document["accept"]} if document.get("accept") else {},
        body=None,
        status=document["status"],
        response_headers=document.get("response_headers") or {},
        response=document.get("response"),
        auth="",
        note=document.get("note", ""),
    )
