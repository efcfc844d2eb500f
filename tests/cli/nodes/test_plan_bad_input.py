"""Input that cannot be used ends with 2, the path of the field and what is wrong, or with a reason; never otherwise."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.runner import CommandResult, plimsoll

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def spec(**more: Any) -> Json:
    requests = {"cpu": "1", "memory": "1Gi", **more.pop("requests", {})}
    return {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}], **more}


def story(**more: Any) -> Json:
    return {
        "options": {"node-autoprovisioning": True},
        "machineTypes": [machine()],
        "pods": [entry()],
        **more,
    }


def machine(**more: Any) -> Json:
    return {"name": "m", "cpu": "4", "memory": "16Gi", "price": 0.2, **more}


def entry(**more: Any) -> Json:
    return {"name": "web", "count": 3, "template": {"spec": spec(**more)}}


def group(**more: Any) -> Json:
    return {"id": "g", "max": 3, "template": {"capacity": {"cpu": 4, "memory": "8Gi"}}, **more}


def request(count: Any = 1, template: str = "t") -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r", "namespace": "ml"},
        "spec": {
            "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets": [{"count": count, "podTemplateRef": {"name": template}}],
        },
    }


def template(body: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "template": {"spec": body},
    }


def node_affinity(*expressions: Json) -> Json:
    terms = [{"matchExpressions": [*expressions]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def run(document: Json) -> CommandResult:
    return plimsoll("plan", "-f", "-", "-o", "json", stdin=json.dumps(document))


SPEC = "pods[0].template.spec"
WRONG = [
    (story(machineTypes=[machine(cpu="-4")]), "machineTypes[0].cpu", "must be more than 0"),
    (story(machineTypes=[machine(memory="0")]), "machineTypes[0].memory", "must be more than 0"),
    (story(machineTypes=[machine(memory="lots")]), "machineTypes[0].memory", "must be a quantity"),
    (story(machineTypes=[machine(memory="9" * 25)]), "machineTypes[0].memory", "more than any machine"),
    (story(machineTypes=[machine(price=-1)]), "machineTypes[0].price", "at least 0"),
    (story(machineTypes=[machine(price=1e300)]), "machineTypes[0].price", "at most"),
    (story(machineTypes=[machine(pods=0)]), "machineTypes[0].pods", "more than 0"),
    (story(machineTypes=[machine(arch=3)]), "machineTypes[0].arch", "Expected `str`"),
    (story(machineTypes=[machine(capacityType="maybe")]), "machineTypes[0].capacityType", "on-demand, spot"),
    (
        story(machineTypes=[machine(allocatable={"cpu": "5"})]),
        "machineTypes[0].allocatable.cpu",
        "more than the machine",
    ),
    (story(machineTypes=[machine(labels={"a b": "x"})]), "machineTypes[0].labels[a b]", "the key"),
    (story(machineTypes=[machine(), machine()]), "machineTypes[1].name", "occurs twice"),
    (story(machineTypes=[machine(memroy="1Gi")]), "machineTypes[0].memroy", "did you mean memory?"),
    (story(nodeGroups=[group(), group()]), "nodeGroups[1].id", "occurs twice"),
    (story(nodeGroups=[group(max=10**12)]), "nodeGroups[0].max", "at most"),
    (story(nodeGroups=[group(max=10**30)]), "nodeGroups[0].max", "wider than 64 bits"),
    (story(nodeGroups=[group(max=10**9, target=10**9)]), "nodeGroups[0].target", "at most"),
    (story(nodeGroups=[group(machineType="n")]), "nodeGroups[0].machineType", "not among machineTypes"),
    (
        story(nodeGroups=[group(template={"capacity": {"cpu": 4}})]),
        "nodeGroups[0].template.capacity",
        "memory is missing",
    ),
    (
        story(nodeGroups=[group(template={"capacity": {"cpu": 4, "memory": 1}, "taints": [{"key": 1}]})]),
        "nodeGroups[0].template.taints[0].key",
        "Expected `str`",
    ),
    (
        story(nodeGroups=[group(template={"capacity": {"cpu": 4, "memory": 1}, "taints": [{"key": "a"}]})]),
        "nodeGroups[0].template.taints[0].effect",
        "NoSchedule",
    ),
    (story(pods=[entry(), entry()]), "pods[1].name", "pods[0] already"),
    (story(pods=[{**entry(), "count": -1}]), "pods[0].count", "at least 0"),
    (story(pods=[{**entry(), "count": 10**12}]), "pods[0].count", "at most"),
    (story(pods=[{**entry(), "count": 10**30}]), "pods[0].count", "wider than 64 bits"),
    (story(pods=[{**entry(), "name": "A b"}]), "pods[0].name", "lower case"),
    (story(pods=[entry(requests={"cpu": "1e30"})]), f"{SPEC}.containers[0].resources.requests.cpu", "any machine"),
    (story(pods=[entry(nodeSelector={"a": 1})]), f"{SPEC}.nodeSelector[a]", "Expected `str`"),
    (story(pods=[entry(nodeSelector={"a": "x y"})]), f"{SPEC}.nodeSelector.a", "the value"),
    (story(pods=[entry(tolerations=[{"key": "a", "operator": "Near"}])]), f"{SPEC}.tolerations[0].operator", "Exists"),
    (
        story(pods=[entry(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone"}])]),
        f"{SPEC}.topologySpreadConstraints[0].maxSkew",
        "at least 1",
    ),
    (
        story(pods=[entry(affinity={"podAntiAffinity": {REQUIRED: [{"labelSelector": {}}]}})]),
        f"{SPEC}.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
        "is missing",
    ),
    (
        story(options={"node-autoprovisoning": True}),
        "options.node-autoprovisoning",
        "did you mean node-autoprovisioning?",
    ),
    (story(options={"max-nodes-total": -1}), "options.max-nodes-total", "the least is 0"),
    (story(machineTyps=[]), "machineTyps", "did you mean machineTypes?"),
    (
        story(objects=[request(template="")]),
        "provisioningrequest/ml/r.spec.podSets[0].podTemplateRef.name",
        "is missing",
    ),
    (
        story(objects=[{**request(), "spec": {**request()["spec"], "podSets": []}}]),
        "provisioningrequest/ml/r.spec.podSets",
        "1 to 32 items",
    ),
    (story(pods=[{**entry(), "template": {"spec": {"containers": []}}}]), f"{SPEC}.containers", "one container"),
    (
        {"nodeGroups": [{"id": "g", "max": 3, "machineType": "n1"}], "pods": [entry()]},
        "nodeGroups[0].machineType",
        "no machine type is called n1; give it in machineTypes, by --catalogue, or say template instead",
    ),
    (story(nodeGroups=[group(capacityType="maybe")]), "nodeGroups[0].capacityType", "on-demand, spot"),
    (
        story(objects=[template(spec()), request(count=-2)]),
        "provisioningrequest/ml/r.spec.podSets[0].count",
        "from 1 to",
    ),
    (story(objects=[template({"containers": 1}), request()]), "podtemplate/ml/t.template.spec.containers", "`array`"),
    (story(objects=[{"kind": "Pod"}]), "objects[0]", "apiVersion is missing"),
]


@pytest.mark.parametrize(("document", "path", "problem"), WRONG, ids=[path for _, path, _ in WRONG])
def test_wrong_fields_are_named(document: Json, path: str, problem: str):
    ended = run(document)
    error = json.loads(ended.stderr)["error"]
    assert (ended.returncode, ended.stdout, error["path"]) == (2, "", path)
    assert problem in error["message"]


IMPOSSIBLE = [
    (spec(requests={"cpu": "-1"}), "requests[cpu]: must be greater than or equal to 0"),
    (spec(requests={"cpu": "one"}), "quantities must match"),
    (spec(requests={"cpu": "100"}), "Insufficient cpu (m)"),
    (
        spec(**node_affinity({"key": "a", "operator": "Near", "values": ["x"]})),
        '"Near" is not a valid node selector operator',
    ),
    (spec(**node_affinity({"key": "a", "operator": "Gt", "values": ["x"]})), "the value must be an integer"),
    (
        spec(
            **node_affinity(
                {"key": "a", "operator": "In", "values": ["x"]}, {"key": "a", "operator": "NotIn", "values": ["x"]}
            )
        ),
        "no group can be created for it: its requirements contradict each other: a=x, and a NotIn x",
    ),
    (spec(nodeSelector={"kubernetes.io/arch": "s390x"}), "didn't match Pod's node affinity/selector"),
]


@pytest.mark.parametrize(("body", "reason"), IMPOSSIBLE, ids=[reason for _, reason in IMPOSSIBLE])
def test_pods_that_can_run_nowhere_remain_with_the_reason(body: Json, reason: str):
    ended = run(story(pods=[entry(), {"name": "odd", "count": 2, "template": {"spec": body}}]))
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["scaleUp"]
    assert found["helped"] == 3
    (left,) = found["remaining"]
    assert left["pods"] == 2
    assert reason in "; ".join(left["reasons"])


@pytest.mark.parametrize("text", ["price: .nan", "price: .inf", "price: -.inf"])
def test_prices_that_are_no_numbers(text: str):
    ended = plimsoll("plan", "-f", "-", stdin=f"machineTypes: [{{name: m, cpu: 1, memory: 1Gi, {text}}}]")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


# ---- anything

NUMBERS = [0, -1, 3, 2**62, 10**30, 0.5, -2.5, 1e300]
TEXTS = ["", "x", "-1", "1e40", "a b/c!", "x" * 300, "NoSchedule", "kubernetes.io/hostname", "2025-01-01T00:00:00Z"]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, *NUMBERS, *TEXTS, [], [None], {}, {"": ""}, {"a": {"b": []}}]
)
RICH = story(
    start="2025-01-01T00:00:00Z",
    machineTypes=[
        machine(zones=["a", "b"], labels={"k": "v"}, gpu={"nvidia.com/gpu": 1}, allocatable={"cpu": "3500m"})
    ],
    nodeGroups=[
        {"id": "g", "min": 0, "max": 4, "target": 1, "machineType": "m", "zone": "a", "price": 0.1},
        group(
            id="t",
            template={
                "capacity": {"cpu": 4, "memory": "8Gi"},
                "labels": {"k": "w"},
                "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            },
        ),
    ],
    pods=[
        entry(
            nodeSelector={"k": "v"},
            tolerations=[{"key": "k", "operator": "Exists"}],
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                }
            ],
            **node_affinity({"key": "k", "operator": "In", "values": ["v"]}),
        ),
        {"name": "own", "count": 1, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec()}},
    ],
    objects=[
        template(spec()),
        request(),
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "g-0", "labels": {"k": "v"}},
            "spec": {"taints": [{"key": "a", "effect": "NoExecute"}]},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi"}, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}},
            "spec": {
                **spec(),
                "nodeName": "g-0",
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            },
            "status": {"phase": "Running"},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "d", "namespace": "default"},
            "spec": {"template": {"metadata": {"labels": {"d": "d"}}, "spec": spec()}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
        },
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "l", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "2"}}]},
        },
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10},
    ],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, value in inner for place in places(value, (*path, key))]


PLACES = places(RICH)


def mutated(changes: list[tuple[tuple[Any, ...], Any, bool]]) -> Json:
    """With junk at some places, or with nothing there. A place that is gone by then is left alone."""
    document = copy.deepcopy(RICH)
    for path, junk, is_removed in changes:
        holder: Any = document
        for key in path[:-1]:
            known = isinstance(holder, dict) and key in holder
            listed = isinstance(holder, list) and isinstance(key, int) and key < len(holder)
            holder = holder[key] if known or listed else None
        if isinstance(holder, dict) and is_removed:
            holder.pop(path[-1], None)
        elif isinstance(holder, dict) or (isinstance(holder, list) and path[-1] < len(holder)):
            holder[path[-1]] = copy.deepcopy(junk)
    return document


@given(st.lists(st.tuples(st.sampled_from(PLACES), JUNK, st.booleans()), min_size=1, max_size=3))
@example([(("nodeGroups", 1), {}, False)])
@settings(max_examples=40, deadline=None)
def test_junk_anywhere_gives_a_plan_or_a_named_error(changes: list[tuple[tuple[Any, ...], Any, bool]]):
    ended = run(mutated(changes))
    assert ended.returncode in {0, 2}, ended.stderr
    if ended.returncode == 2:
        assert json.loads(ended.stderr.splitlines()[-1])["error"]["message"]
