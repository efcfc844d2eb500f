"""What a real kube-scheduler 1.34 wrote, written again by ours: conditions, events, field managers, order of writes.

All 58 recorded lines are gone through: pods that found no place with their events, a pod that fits, one that is gated,
and a preemption from nomination to binding. Node lists and claims among them are part of the set-up.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.scheduler import SchedulerSettings
from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id, golden
from tests.conformance.scheduler_setups import (
    CORDONED,
    FAILURES,
    LOW,
    SCHED,
    UNTAINTED,
    made,
    nodes,
    running,
)
from tests.local.scheduler.builders import SchedulerCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMES = re.compile(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_EVENT_NAMES = re.compile(r'"name": "([a-z0-9-]+)\.[0-9a-f]{16}"')


@pytest.fixture
def world() -> Iterator[SchedulerCluster]:
    with SchedulerCluster(settings=SchedulerSettings(host="HOST")) as world:
        world.namespace("sched")
        yield world


def line(number: int) -> Any:
    return by_id(f"scheduler-{number:03}").response


def comparable(value: Any) -> Any:
    text = _TIMES.sub("2026-11-15T00:00:00Z", json.dumps(value))
    return json.loads(_EVENT_NAMES.sub(r'"name": "\1.<time>"', text))


def differences(recorded: Any, ours: Any) -> list[str]:
    return list(body_differences(comparable(recorded), comparable(ours), is_cut=False, id_="scheduler"))


def labels_of(name: str) -> dict[str, str]:
    return {"app": "sp" if name == "spread" else name}


def created(world: SchedulerCluster, number: int) -> str:
    recorded = line(number)
    name = str(recorded["metadata"]["name"])
    made(world, f"{SCHED}/pods", {"metadata": {"name": name, "labels": labels_of(name)}, "spec": recorded["spec"]})
    world.run.settle()
    return name


def events(world: SchedulerCluster, selector: str) -> list[Any]:
    return list(world.ask("GET", f"{SCHED}/events?fieldSelector={selector.replace('=', '%3D')}").body["items"])


@pytest.mark.parametrize("number", FAILURES, ids=lambda number: by_id(f"scheduler-{number:03}").title)
def test_a_pod_that_finds_no_place_is_reported_in_the_recorded_words(world: SchedulerCluster, number: int):
    for set_up in FAILURES[number]:
        set_up(world)
    world.run.settle()

    name = created(world, number)

    pod = world.ask("GET", f"{SCHED}/pods/{name}").body
    assert differences(line(number)["status"], pod["status"]) == []
    assert differences(line(number + 1)["items"], events(world, f"involvedObject.name={name}")) == []


def test_a_pod_that_fits_is_bound_as_recorded(world: SchedulerCluster):
    nodes({"n1": CORDONED, "n3": CORDONED, **UNTAINTED})(world)
    watch = world.watch(f"{SCHED}/pods?watch=true&fieldSelector=metadata.name%3Dfits")
    container = {"name": "c", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}

    made(world, f"{SCHED}/pods", {"metadata": {"name": "fits", "labels": {"app": "fits"}}, "spec": spec})
    world.run.settle()

    assert differences(line(22), watch.events) == []
    assert differences(line(23)["items"], events(world, "involvedObject.name=fits")) == []


def test_a_gated_pod_is_left_as_the_server_made_it(world: SchedulerCluster):
    nodes(UNTAINTED)(world)
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "nginx:1.27"}],
        "schedulingGates": [{"name": "ex.com/g"}],
    }

    made(world, f"{SCHED}/pods", {"metadata": {"name": "gate"}, "spec": spec})
    world.run.settle()

    assert differences(line(49), world.ask("GET", f"{SCHED}/pods/gate").body) == []
    assert events(world, "involvedObject.name=gate") == []


def test_preemption_goes_from_nomination_to_binding_as_recorded(world: SchedulerCluster):
    nodes(UNTAINTED)(world)
    for set_up in LOW:
        set_up(world)
    for name, since in (("low0", "2025-12-01T00:00:00Z"), ("low1", "2025-12-01T00:00:00Z")):
        running(name, since)(world)
    running("low2", "2026-01-01T00:00:00Z")(world)
    world.run.settle()
    position = world.ask("GET", f"{SCHED}/pods").body["metadata"]["resourceVersion"]
    watch = world.watch(f"{SCHED}/pods?watch=true&resourceVersion={position}")
    container = {"name": "c", "image": "nginx:1.27", "resources": {"requests": {"cpu": "2"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], "priorityClassName": "hi"}

    made(world, f"{SCHED}/pods", {"metadata": {"name": "high", "labels": {"app": "high"}}, "spec": spec})
    world.run.settle()

    recorded = [item for item in line(56) if is_of_the_story(item)]
    story = [(item["type"], item["object"]["metadata"]["name"]) for item in recorded]
    assert watch.story == story
    for theirs, ours in zip(recorded, watch.events, strict=True):
        assert differences(reported(theirs), reported(ours)) == [], story
    assert differences(line(57)["items"], events(world, "reason=Preempted")) == []
    assert differences(line(58)["items"], events(world, "involvedObject.name=high")) == []


def is_of_the_story(event: Any) -> bool:
    return event["object"]["metadata"]["name"] in {"high", "low2"}


def reported(event: Any) -> Any:
    """What the scheduler had a hand in; how the victim came to its node was not recorded."""
    pod = event["object"]
    metadata = {key: item for key, item in pod["metadata"].items() if key != "managedFields"}
    conditions = [
        condition
        for condition in pod["status"].get("conditions", [])
        if metadata["name"] == "high" or is_ours(condition)
    ]
    fields = [field for field in pod["metadata"]["managedFields"] if field["manager"] == "kube-scheduler"]
    status = {**pod["status"], "conditions": conditions}
    return {"metadata": metadata, "fields": fields, "status": status, "node": pod["spec"].get("nodeName")}


def is_ours(condition: Any) -> bool:
    return bool(condition["type"] == "DisruptionTarget")


def test_every_recorded_line_is_replayed():
    replayed = {number for failure in FAILURES for number in (failure, failure + 1)} | {22, 23, 49, 56, 57, 58}
    set_up = {3, 40}

    assert replayed | set_up == set(range(1, len(golden("scheduler")) + 1))
