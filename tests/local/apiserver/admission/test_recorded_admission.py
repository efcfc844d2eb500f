"""Pods, nodes, volumes and refusals as a recorded server gave them, compared in what admission is responsible for."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plimsoll.objects.builtin import default
from tests.local.apiserver.admission.builders import AdmissionHarness, an, in_world, refused

GOLDEN = Path(__file__).parents[3] / "fixtures/kubernetes/golden"
Json = dict[str, Any]


def recorded(group: str, kinds: frozenset[str]) -> list[Json]:
    lines = map(json.loads, (GOLDEN / f"{group}.jsonl").read_text().splitlines())
    return [
        line
        for line in lines
        if line["method"] == "POST"
        and line["status"] == 201
        and not line["query"]
        and isinstance(line["body"], dict)
        and line["response"].get("kind") in kinds
    ]


CREATED = [
    *recorded("create", frozenset({"Pod", "Node", "PersistentVolume", "PersistentVolumeClaim"})),
    *recorded("nodelifecycle", frozenset({"Node"})),
]


@pytest.mark.parametrize("entry", CREATED, ids=lambda entry: entry["id"])
def test_what_admission_fills_in_is_what_was_recorded(entry: Json):
    after = entry["response"]

    async def story(world: AdmissionHarness) -> Json:
        await furnish_as_recorded(world, entry)
        body = {"apiVersion": after["apiVersion"], "kind": after["kind"], **deepcopy(entry["body"])}
        body["metadata"] = {**body["metadata"], "namespace": after["metadata"].get("namespace", "")}
        return await world.create(body)

    made = in_world(story)

    assert masked(made.get("spec")) == masked(after.get("spec"))
    for part in ("annotations", "finalizers"):
        assert made["metadata"].get(part) == after["metadata"].get(part)


async def furnish_as_recorded(world: AdmissionHarness, entry: Json) -> None:
    namespace = entry["response"]["metadata"].get("namespace", "unused")
    await world.furnish(namespace)
    high = an("scheduling.k8s.io/v1", "PriorityClass", "create-high", namespace="", value=1000)
    await world.put(default(high))
    if namespace == "create-lr":
        await world.put(created("create-044", namespace))
    if namespace == "create-quota":
        await world.put(created("create-047", namespace))


def created(identity: str, namespace: str) -> Json:
    body: Json = deepcopy(by_id()[identity]["body"])
    body["metadata"]["namespace"] = namespace
    return body


@cache
def by_id() -> dict[str, Json]:
    texts = [(GOLDEN / f"{name}.jsonl").read_text() for name in ("create", "delete")]
    return {entry["id"]: entry for text in texts for entry in map(json.loads, text.splitlines())}


def masked(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    return json.loads(re.sub(r"kube-api-access-[a-z0-9]{5}", "kube-api-access-xxxxx", text))


@pytest.mark.parametrize("identity", ["create-035", "create-036", "create-046", "create-049", "create-051"])
def test_refusals_are_those_recorded(identity: str):
    entry = by_id()[identity]
    namespace = entry["path"].split("/")[4]

    async def story(world: AdmissionHarness) -> None:
        await furnish_as_recorded(world, {"response": {"metadata": {"namespace": namespace}}})
        if identity == "create-051":
            await world.create(named(by_id()["create-050"]["body"], namespace))
        await world.create(named(entry["body"], namespace))

    assert refused(story) == entry["response"]


def test_nothing_new_comes_into_a_terminating_namespace():
    entry = by_id()["delete-054"]

    async def story(world: AdmissionHarness) -> None:
        await world.furnish("delete-ns", phase="Terminating")
        await world.create(named(entry["body"], "delete-ns"))

    assert refused(story) == entry["response"]


def test_the_default_namespace_may_not_be_deleted():
    async def story(world: AdmissionHarness) -> None:
        await world.furnish("default")
        await world.delete(an("v1", "Namespace", "default", namespace=""))

    assert refused(story) == by_id()["delete-058"]["response"]


def named(body: Json, namespace: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}
