from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.scenario import AdvanceStep, AtStep, Expectation, ExpectStep, LoopStep, Scenario, WorldKind

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def read(**whole: Any) -> Scenario:
    return read_scenario(msgspec.json.encode(whole), source="test")


def complaint(**whole: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(**whole)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_an_empty_scenario_has_the_defaults():
    scenario = read()
    assert (scenario.start, scenario.seed, scenario.world) == (datetime(2025, 1, 1, tzinfo=UTC), 0, WorldKind.STEPPED)


def test_yaml_and_json_are_distinguished_by_content():
    assert read_scenario(b"seed: 7\n", source="a.json").seed == 7


def test_all_mistakes_are_reported_at_once_with_their_paths():
    lines = complaint(
        start="yesterday",
        nodeGroups=[{"max": 1, "machineType": "m", "bootSecond": 3}],
        steps=[{"advance": "soon"}, {"expect": {"/pods": {"matches": "("}}}],
    ).splitlines()
    assert lines[0].startswith("nodeGroups[0].bootSecond: unknown field; did you mean bootSeconds?")
    assert [line.split(": ")[0] for line in lines] == [
        "nodeGroups[0].bootSecond",
        "nodeGroups[0]",
        "start",
        "steps[0].advance",
        "steps[1].expect[/pods].matches",
    ]


@pytest.mark.parametrize(
    ("whole", "wanted"),
    [
        ({"steps": [{"advence": "1s"}]}, "steps[0]: advence is not a step; did you mean advance?"),
        (
            {"steps": [{"advance": "1s", "schedule": True}]},
            "steps[0]: says advance and schedule: a step is one of them",
        ),
        ({"steps": [{"schedule": False}]}, "steps[0].schedule: must be true, is false"),
        ({"steps": [{"loop": 0}]}, "steps[0].loop: must be a whole number of at least 1, is 0"),
        ({"steps": [{"every": "1s", "at": 3}]}, "steps[0].every: unknown field beside at"),
        (
            {"world": "live", "steps": [{"loop": 1}]},
            "steps[0].loop: in a live world loops and scheduling happen by themselves; use advance or at",
        ),
        ({"world": "alive"}, 'world: must be one of stepped, live, is "alive"'),
        ({"seed": True}, "seed: must be a whole number or a text, is true"),
        ({"options": {"--max-nodes": 3}}, "options.--max-nodes: options are named without dashes: max-nodes"),
        ({"machineTypes": [{"name": "m", "cpu": "4x", "memory": 1}]}, "machineTypes[0].cpu: must be a quantity"),
        (
            {"nodeGroups": [{"id": "g", "max": 2, "target": 3, "template": {"capacity": {"cpu": 1}}}]},
            "nodeGroups[0]: target 3 is above max 2",
        ),
        ({"nodeGroups": [{"id": "g", "max": 1}]}, "nodeGroups[0]: says neither machineType nor template"),
        ({"objects": [{"kind": "Pod", "metadata": {"name": "p"}}]}, "objects[0]: apiVersion is missing"),
        ({"pods": [{"name": "p", "count": 2}]}, "pods[0]: template is missing"),
        (
            {"steps": [{"provider": {"calls": [{"call": "IncreaseSize", "group": "g"}]}}]},
            "steps[0].provider.calls[0]: arg is missing",
        ),
        (
            {"steps": [{"expect": {"/pods": {"count": {"foo": 1}}}}]},
            "steps[0].expect[/pods].count.foo: is not an operator; known are eq, ",
        ),
        (
            {"steps": [{"expect": {"/pods": {"count": {"eq": 1, "foo": 1}}}}]},
            "steps[0].expect[/pods].count.foo: is not an operator; known are eq, ",
        ),
        (
            {"steps": [{"expect": {"/pods": {"count": {}}}}]},
            "steps[0].expect[/pods].count: must be a number or operators, is an empty map",
        ),
        (
            {"steps": [{"expect": {"/pods": {"count": {"lt": None}}}}]},
            "steps[0].expect[/pods].count.lt: must be a number or a text, is null",
        ),
        (
            {"steps": [{"expect": {"/nodes": {"countt": 0}}}]},
            "steps[0].expect[/nodes].countt: is not an operator; did you mean count?",
        ),
        (
            {"steps": [{"expect": {"/nodes": {"count": 0, "lte": 3}}}]},
            "steps[0].expect[/nodes].lte: is not an operator; did you mean le?",
        ),
        (
            {"steps": [{"expect": {"/nodes": {"count": 0, "foo": 3}}}]},
            "steps[0].expect[/nodes].foo: is not an operator; known are eq, ",
        ),
        (
            {"steps": [{"expect": {"/nodes": {"count": {"lte": 3}}}}]},
            "steps[0].expect[/nodes].count.lte: is not an operator; did you mean le?",
        ),
        ({"steps": [{"advance": "100000000000d"}]}, "steps[0].advance: is too long: the longest is 36600d, is "),
        ({"steps": [{"advance": f"{'1' + '7' * 308}s" * 2}]}, "steps[0].advance: is too long: the longest is"),
        ({"steps": [{"advance": 1e15}]}, "steps[0].advance: is too long: the longest is 36600d, is "),
        ({"steps": [{"advance": True}]}, "steps[0].advance: must be a duration"),
        ([], "test: a scenario is a map of fields, this is a list"),
        ("story", 'test: a scenario is a map of fields, this is "story"'),
    ],
)
def test_a_mistake_names_its_field(whole: Any, wanted: str):
    with pytest.raises(InvalidInput) as caught:
        read_scenario(msgspec.json.encode(whole), source="test")
    assert str(caught.value).startswith(wanted)


@pytest.mark.parametrize(
    "literal",
    [
        {"target": 1, "min": 0, "max": 3},
        {"min": 0},
        {"group": "g", "machineType": "small", "pods": []},
        {"default/web-0": None},
        {},
    ],
)
def test_a_map_that_looks_like_no_operators_is_compared_as_it_is(literal: dict[str, Any]):
    (step,) = read(steps=[{"expect": {"/x": literal}}]).steps
    assert step == ExpectStep(expectations=(Expectation(path="/x", operators=(("eq", literal),)),))


def test_eq_takes_any_map_as_it_is():
    (step,) = read(steps=[{"expect": {"/x": {"eq": {"count": 2, "countt": 3}}}}]).steps
    assert step == ExpectStep(expectations=(Expectation(path="/x", operators=(("eq", {"count": 2, "countt": 3}),)),))


def test_names_are_given_once():
    small = {"name": "m", "cpu": 1, "memory": 1}
    assert complaint(machineTypes=[small, small]) == "machineTypes[1].name: m occurs twice"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1m30s", 90), ("1.5h", 5400), ("2d", 172_800), ("250ms", 0.25), (7, 7), (0.5, 0.5)],
)
def test_durations(text: Any, seconds: float):
    assert read(steps=[{"advance": text}]).steps == (AdvanceStep(seconds=seconds),)


def test_loops_come_every_ten_seconds_by_default():
    assert read(steps=[{"loop": 3}, {"loop": 1, "every": "1m"}]).steps == (
        LoopStep(times=3, every_s=10),
        LoopStep(times=1, every_s=60),
    )


def test_a_moment_is_seconds_after_the_start_or_a_date():
    at = read(steps=[{"at": 600}, {"at": "10m"}, {"at": "2025-01-01T00:10:00Z"}]).steps
    assert at == (
        AtStep(moment=600.0),
        AtStep(moment=600.0),
        AtStep(moment=datetime(2025, 1, 1, 0, 10, tzinfo=UTC)),
    )


def test_a_file_is_one_scenario(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableDocument) as raised:
        read_scenario(b"seed: 1\n---\nseed: 2\n", source="two.yaml")
    reviewed(str(raised.value))


# ---- objects


def node_of(name: str = "worker", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **fields}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (node_of(status={"capacity": [1]}), "status.capacity"),
        (node_of(status={"capacity": {"cpu": "abc"}}), "status.capacity[cpu]"),
        (node_of(status={"allocatable": {"cpu": "-1"}}), "status.allocatable.cpu"),
        (node_of(status={"conditions": 3}), "status.conditions"),
        (node_of(status={"conditions": [{"type": "Ready", "status": "Yes"}]}), "status.conditions[0].status"),
        (node_of(status=7), "status"),
        (node_of(metadata={"labels": [3]}), "metadata.labels"),
        (node_of(metadata={"creationTimestamp": "yesterday"}), "metadata.creationTimestamp"),
        (node_of(metadata={"labls": {}}), "metadata.labls"),
        ({**node_of(metadata={"uid": [3]}), "kind": "ConfigMap"}, "metadata.uid"),
        ({**node_of(status={"phase": "Foo"}), "kind": "Pod"}, "status.phase"),
        ({**node_of(status={"startTime": 7}), "kind": "Pod"}, "status.startTime"),
        ({**node_of(metadata={"labels": {"a": 3}}), "apiVersion": "example.com/v1"}, "metadata.labels[a]"),
    ],
)
def test_a_field_of_an_object_that_is_not_of_its_type_is_reported_with_its_path(body: Any, field: str):
    assert complaint(objects=[body]).startswith(f"objects[0].{field}: ")
    assert complaint(steps=[{"apply": body}]).startswith(f"steps[0].apply.{field}: ")


def test_a_status_is_taken_as_a_server_would_hold_it():
    (body,) = read(objects=[node_of(status={"capacity": {"cpu": 4}, "conditions": None})]).objects
    assert body["status"] == {"capacity": {"cpu": "4"}}


@pytest.mark.parametrize(("amounts", "field"), [({"cpu": -2}, "cpu"), ({"cpu": 0}, "cpu"), ({"memory": -1}, "memory")])
def test_machines_have_something_to_run_pods_on(amounts: dict[str, Any], field: str):
    small = {"name": "m", "cpu": 1, "memory": 1, **amounts}
    reported = f"must be more than 0, is {amounts[field]}"
    assert complaint(machineTypes=[small]) == f"machineTypes[0].{field}: {reported}"
    group = {"id": "g", "template": {"capacity": {"cpu": 1, "memory": 1, **amounts}}}
    assert complaint(nodeGroups=[group]) == f"nodeGroups[0].template.capacity.{field}: {reported}"


def test_a_machine_may_have_none_of_what_it_can_do_without():
    capacity = {"cpu": 1, "memory": 1, "nvidia.com/gpu": 0}
    assert read(nodeGroups=[{"id": "g", "template": {"capacity": capacity}}]).node_groups


PODS = {"name": "w", "template": {"spec": {"containers": []}}}


def test_pods_are_named_once_in_their_namespace():
    reported = "pods[1].name: default/w is pods[0] already; give it another name"
    assert complaint(pods=[{**PODS, "count": 2}, {**PODS, "count": 5}]) == reported
    assert len(read(pods=[PODS, {**PODS, "namespace": "other"}]).pods) == 2


def test_objects_are_given_once():
    reported = "objects[1]: Node default/worker is objects[0] already; what changes on the way is a step"
    assert complaint(objects=[node_of(), node_of()]) == reported


def test_requests_may_be_spelled_as_in_their_first_design():
    head = {"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest", "metadata": {"name": "r"}}
    body = {**head, "spec": {"provisioningClass": "c", "Parameters": {"noRetry": "true"}, "podSets": []}}
    (found,) = read(objects=[body]).objects
    assert found["spec"] == {"provisioningClassName": "c", "parameters": {"noRetry": "true"}, "podSets": []}


def test_a_pod_among_the_objects_is_none_of_pods():
    body = {**node_of("w-1"), "kind": "Pod"}
    assert complaint(objects=[body], pods=[{**PODS, "count": 2}]) == (
        "objects[0].metadata.name: default/w-1 is a pod of pods[0] already"
    )
    assert read(objects=[body], pods=[PODS]).objects


def test_templates_of_pods_are_judged_like_pods():
    template = {"metadata": {"ownerReferences": 3}, "spec": {}}
    assert complaint(pods=[{"name": "w", "template": template}]).startswith("pods[0].template.metadata.ownerReferences")


# ---- options


def test_options_are_those_of_the_node_autoscaler():
    reported = complaint(options={"no-such-flag": 1, "max-cpu": "many"}, steps=[{"set": {"also-none": 2}}]).splitlines()
    assert [line.split(": ")[0] for line in reported] == [
        "steps[0].set.also-none",
        "options.no-such-flag",
        "options.max-cpu",
    ]
    assert read(options={"max-cpu": 3}, steps=[{"set": {"max-cpu": 4}}]).options == {"max-cpu": 3}
