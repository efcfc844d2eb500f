"""Recorded answers of a real API server, and small objects to build tests from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_GOLDEN = Path(__file__).parents[2] / "fixtures" / "kubernetes" / "golden"


def recorded(name: str) -> dict[str, Json]:
    """The recordings of one file, by id; bodies that are JSON text are read."""
    cases = {}
    for line in (_GOLDEN / f"{name}.jsonl").read_text().splitlines():
        case = json.loads(line)
        if isinstance(case["body"], str) and case["body"].startswith("{"):
            try:
                case["body"] = json.loads(case["body"])
            except ValueError:
                continue
        cases[case["id"]] = case
    return cases


def creations(name: str, status: int) -> list[str]:
    """Ids of the object creations that were answered with `status`."""
    return [
        id_
        for id_, case in recorded(name).items()
        if case["method"] == "POST" and case["status"] == status and isinstance(case["body"], dict)
    ]


def causes(case: Json) -> list[Json]:
    return case["response"]["details"]["causes"]


def a_container(**fields: Any) -> Json:
    return {"name": "c", "image": "nginx:1.27", **fields}


def a_pod(*, metadata: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **(metadata or {})},
        "spec": {"containers": [a_container()], **spec},
    }


def an_object(api_version: str, kind: str, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def a_template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [a_container()], **spec}}


def a_workload(kind: str, **spec: Any) -> Json:
    return an_object(
        "apps/v1", kind, spec={"selector": {"matchLabels": {"app": "x"}}, "template": a_template(), **spec}
    )


def a_job(**spec: Any) -> Json:
    return an_object(
        "batch/v1",
        "Job",
        spec={"template": {"spec": {"restartPolicy": "Never", "containers": [a_container()]}}, **spec},
    )
