"""The recorded scenarios of deployments, replayed: statuses, sets, pods and events are those of the real controllers.

The test does what the recorder did: it creates and patches deployments, and says in place of a kubelet which pods are
ready. It binds pods in place of the scheduler. Hashes of templates are ours; they are replaced by the recorded ones.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import pytest

from plimsoll.local.controller_manager.services import build_disruption_services
from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id
from tests.conformance.servers import RECORDED_DAY
from tests.local.apiserver.builders import MERGE
from tests.local.controller_manager.workloads.replica_sets.builders import both, is_ready
from tests.local.local_cluster import LocalClusterHarness

_APPS = "/apis/apps/v1/namespaces/ctl"
_PODS = "/api/v1/namespaces/ctl/pods"
_BUDGETS = "/apis/policy/v1/namespaces/ctl/poddisruptionbudgets"
_GOLDEN = {"User-Agent": "golden/1.0"}
_EVENT_LISTS = {"controllers-011", "controllers-012"}
_HASH = "pod-template-hash"


def _deployment(name: str, *, replicas: int, deadline_s: int | None = None, **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "nginx:1.27"}], "terminationGracePeriodSeconds": 0, **pod}
    labels = {"app": name}
    whole: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    if deadline_s is not None:
        whole["progressDeadlineSeconds"] = deadline_s
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


class _RecordedDeployment(LocalClusterHarness):
    """Replays the recorded scenarios and keeps our answers to the recorded requests."""

    def __init__(self) -> None:
        super().__init__(lambda parts: [*both(parts), *build_disruption_services(parts)])
        self.run.advance_to(RECORDED_DAY)
        self.answers: dict[str, Any] = {}

    def look(self, *numbers: int) -> None:
        for number in numbers:
            recorded = by_id(f"controllers-{number:03}")
            query = "&".join(f"{name}={value}" for name, value in recorded.query.items())
            self.answers[recorded.id] = self.ask("GET", f"{recorded.path}?{query}").body

    def create(self, body: dict[str, Any]) -> None:
        reply = self.ask("POST", f"{_APPS}/deployments", body, headers=_GOLDEN)
        assert reply.status == 201, reply
        self.settle()

    def settle(self) -> None:
        self.run.settle()
        for number, pod in enumerate(self.ask("GET", _PODS).body["items"], start=1):
            if "nodeName" not in pod["spec"] and "nodeSelector" not in pod["spec"]:
                name = pod["metadata"]["name"]
                target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number}"}
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                assert self.ask("POST", f"{_PODS}/{name}/binding", binding).status == 201
        self.run.advance_by(0.1)

    def one_more_is_ready(self) -> bool:
        self.run.advance_by(1)
        pods = self.ask("GET", f"{_PODS}?labelSelector=app=d").body["items"]
        pod = next((item for item in pods if not is_ready(item)), None)
        if pod is not None:
            status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
            url = f"{_PODS}/{pod['metadata']['name']}/status"
            assert self.ask("PATCH", url, status, content=MERGE, headers=_GOLDEN).status == 200
            self.settle()
        return pod is not None

    def report(self) -> None:
        self.namespace("ctl")
        self.create(_deployment("d", replicas=2))
        self.look(1, 2, 3)
        self.one_more_is_ready()
        self.look(4)
        self.one_more_is_ready()
        self.look(5, 6)
        image = by_id("controllers-007").response["spec"]["template"]["spec"]["containers"][0]["image"]
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
        content = "application/strategic-merge-patch+json"
        reply = self.ask("PATCH", f"{_APPS}/deployments/d", patch, content=content, headers=_GOLDEN)
        assert reply.status == 200, reply
        self.settle()
        self.look(7, 8)
        while self.one_more_is_ready():
            pass
        self.look(9, 10, 11, 12)
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "d"}}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": spec}
        assert self.ask("POST", _BUDGETS, budget, headers=_GOLDEN).status == 201
        self.settle()
        self.look(33)
        self.create(_deployment("dl", replicas=1, deadline_s=1, nodeSelector={"no": "where"}))
        self.run.advance_by(3)
        self.look(13)
        self.create(_deployment("dq", replicas=1, serviceAccountName="nosuch"))
        self.look(14, 15)


@cache
def _answers() -> dict[str, Any]:
    with _RecordedDeployment() as story:
        story.report()
        sets = story.ask("GET", f"{_APPS}/replicasets").body["items"]
        text = json.dumps(story.answers)
    for set_ in sets:
        text = text.replace(set_["metadata"]["labels"][_HASH], _recorded_hash(set_))
    answers: dict[str, Any] = json.loads(text)
    return answers


def _recorded_hash(ours: Any) -> str:
    """Of the recorded set of the same deployment and revision."""
    found: dict[tuple[str, str], str] = {}
    for recorded_id in ("controllers-010", "controllers-015"):
        for item in by_id(recorded_id).response["items"]:
            found[_which(item)] = item["metadata"]["labels"][_HASH]
    found["dl", "1"] = "c7577c67c"
    return found[_which(ours)]


def _which(replica_set: Any) -> tuple[str, str]:
    metadata = replica_set["metadata"]
    return metadata["labels"]["app"], metadata["annotations"]["deployment.kubernetes.io/revision"]


def _in_order(body: Any, recorded_id: str) -> Any:
    """Lists stand in the order of names, which hashes and generated suffixes decide."""
    if "items" not in body:
        return body
    items = body["items"]
    if recorded_id in _EVENT_LISTS:
        items = sorted((_without_names(item) for item in items), key=_reported)
    elif body["kind"] == "ReplicaSetList":
        items = sorted(items, key=_which)
    return {**body, "items": items}


def _without_names(event: Any) -> Any:
    message = re.sub(r"(pod: d-\w+)-\w{5}$", r"\1-<suffix>", event["message"])
    name = re.sub(r"\.[0-9a-f]+$", ".<time>", event["metadata"]["name"])
    return {**event, "message": message, "metadata": {**event["metadata"], "name": name}}


def _reported(event: Any) -> tuple[str, str]:
    return event["involvedObject"]["name"], event["message"]


@pytest.mark.parametrize("number", [*range(1, 16), 33])
def test_the_controllers_leave_what_the_real_ones_left(number: int):
    recorded_id = f"controllers-{number:03}"
    recorded = _in_order(by_id(recorded_id).response, recorded_id)
    ours = _in_order(_answers()[recorded_id], recorded_id)
    found = list(body_differences(recorded, ours, is_cut=False, id_=recorded_id))
    assert not found, "\n".join(found)
