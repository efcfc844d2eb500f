"""The recorded scenarios of jobs, replayed: statuses, their transitions, pods and events are the real ones."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from tests.conformance.masks import masked
from tests.conformance.recordings import by_id
from tests.conformance.workload_scenarios import RecordedScenario, differences_from

_JOBS = "/apis/batch/v1/namespaces/ctl/jobs"


def _job(name: str, **spec: Any) -> dict[str, Any]:
    pod = {
        "containers": [{"name": "c", "image": "x"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def _report(story: RecordedScenario) -> None:
    ended = {name: value for name, value in _recorded_end().items() if name != "qosClass"}
    story.begin()
    story.create(_JOBS, _job("j", completions=2, parallelism=2, backoffLimit=0))
    for pod in story.pods("j"):
        story.bind(pod["metadata"]["name"], "n3")
    story.look(24, 25)
    watch = story.watch(
        f"{_JOBS}?watch=true&resourceVersion={story.answers['controllers-024']['metadata']['resourceVersion']}"
    )
    for pod in story.pods("j"):
        story.says(pod["metadata"]["name"], ended)
    story.run.advance_by(3)
    story.look(26)
    story.answers["controllers-027"] = watch.events
    story.create(_JOBS, _job("jf", backoffLimit=0))
    for pod in story.pods("jf"):
        story.says(pod["metadata"]["name"], {"phase": "Failed"})
    story.run.advance_by(3)
    story.look(28)
    story.create(_JOBS, _job("jx", completions=2, completionMode="Indexed"))
    for pod in story.pods("jx"):
        story.bind(pod["metadata"]["name"], "n1")
        story.run.advance_by(1)
        story.says(pod["metadata"]["name"], ended)
    story.run.advance_by(3)
    for pod in story.pods("jx"):
        if "nodeName" not in pod["spec"]:
            story.bind(pod["metadata"]["name"], "n3")
    story.look(29, 30)
    story.create(_JOBS, _job("js", suspend=True))
    story.look(31, 32)


def _recorded_end() -> dict[str, Any]:
    """What the recorder wrote in place of a kubelet of a pod that ended well."""
    status: dict[str, Any] = by_id("controllers-030").response["items"][0]["status"]
    return status


@cache
def _answers() -> dict[str, Any]:
    with RecordedScenario() as story:
        _report(story)
        return story.answers


@pytest.mark.parametrize("number", [24, 26, 27, 28, 29, 30, 31])
def test_the_answer_is_the_recorded_one(number: int):
    recorded_id = f"controllers-{number:03}"
    assert not differences_from(recorded_id, _answers()[recorded_id])


def test_a_job_pod_is_the_recorded_one():
    body = _answers()["controllers-025"]
    expected = by_id("controllers-025").response["metadata"]
    ours = {**body, "items": body["items"][:1], "metadata": expected}
    assert not differences_from("controllers-025", ours)


def test_events_of_jobs_are_the_recorded_ones():
    recorded = _reported(by_id("controllers-032").response)
    assert _reported(_answers()["controllers-032"]) == recorded


def _reported(events: Any) -> list[Any]:
    """Events in the order of their objects, without generated names."""
    reported = []
    for event in masked(events)["items"]:
        metadata = {name: value for name, value in event["metadata"].items() if name != "name"}
        message = re.sub(r"-[a-z0-9]{5}$", "-<suffix>", event["message"])
        reported.append({**event, "metadata": metadata, "message": message})
    return sorted(reported, key=lambda item: (item["involvedObject"]["name"], item["reason"], item["message"]))
