"""The recorded stories of stateful and daemon sets, replayed: statuses, pods and revisions are the real ones.

Revisions of stateful sets have the very names a real cluster gives them. Those of daemon sets are hashes of a Go
program's memory; ours is put in place of the recorded one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.conformance.recordings import by_id
from tests.conformance.workload_scenarios import RecordedScenario, differences_from

_APPS = "/apis/apps/v1/namespaces/ctl"
_HASH = "controller-revision-hash"


def _set(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": "nginx:1.27"}], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": pod}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


@cache
def _answers() -> dict[str, Any]:
    with RecordedScenario() as story:
        story.begin()
        story.create(f"{_APPS}/statefulsets", _set("StatefulSet", "s", replicas=2, serviceName="s"))
        story.bind("s-0", "n1")
        story.look(16, 17)
        story.ready("s-0")
        story.ready("s-1")
        story.look(18)
        story.run.advance_by(1)
        story.image(f"{_APPS}/statefulsets/s", "nginx:1.28")
        story.look(19, 20)
        story.create(f"{_APPS}/daemonsets", _set("DaemonSet", "ds"))
        story.look(21)
        for pod in story.pods("ds"):
            term = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            story.bind(pod["metadata"]["name"], term["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
        story.look(22)
        for pod in story.pods("ds"):
            story.ready(pod["metadata"]["name"])
        story.look(23)
        return story.answers


@pytest.mark.parametrize("number", [16, 17, 18, 19, 20, 21, 23])
def test_the_answer_is_the_recorded_one(number: int):
    recorded_id = f"controllers-{number:03}"
    assert not differences_from(recorded_id, _answers()[recorded_id])


def test_a_daemon_pod_is_the_recorded_one():
    recorded = by_id("controllers-022").response["items"][0]
    body = dict(_answers()["controllers-022"])
    ours = next(pod for pod in body["items"] if pod["spec"]["nodeName"] == recorded["spec"]["nodeName"])
    ours["metadata"]["labels"][_HASH] = recorded["metadata"]["labels"][_HASH]
    expected = by_id("controllers-022").response["metadata"]
    assert not differences_from("controllers-022", {**body, "items": [ours], "metadata": expected})
