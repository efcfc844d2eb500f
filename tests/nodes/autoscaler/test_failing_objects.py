"""An object that makes a rule fail is set aside: it stays, it is named, and the loop goes on without it."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.plans import Ref
from plimsoll.core.value_parsing import quote
from plimsoll.journal.entries import Query
from plimsoll.nodes.actuation.drain import find_pods_to_evict
from plimsoll.nodes.model.reasons import BAD_FIELD, BAD_OBJECT
from plimsoll.objects.api.pods import Pod
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World
from tests.nodes.autoscaler.loop_scenarios import containers, group, pods, replica_set, scenario_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.core.plans import NotDone
    from plimsoll.nodes.actuation.node_pods import PodsOfNode
    from tests.nodes.autoscaler.loop_scenarios import Json

OPTIONS = {"scale-down-unneeded-time": "1m", "scale-down-delay-after-add": "1s"}
DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
LARGEST = 2**63 - 1


class SteppedCluster(World):
    """A world that takes steps, and whose journal can be read."""

    def __init__(self, **scenario: Any) -> None:
        self._plugged = Plugins(make_loop=ScenarioLoop)
        super().__init__(scenario_of((), {"options": OPTIONS, **scenario}), plugs=self._plugged)
        self._scenario_run = ScenarioRun(self, self._plugged)

    def take(self, *steps: Json) -> None:
        for step in steps_of(steps, world=self.scenario.world):
            self._scenario_run.take_step(step, path="test")

    def outcome(self) -> Json:
        return self._scenario_run.finish().outcome

    def find_reasons(self, ref: str) -> list[NotDone]:
        """What `plimsoll why` reads about an object."""
        assert isinstance(self.loop, ScenarioLoop)
        entries = self.run_now(self.loop.journal.list_entries(Query(ref=Ref.parse(ref))))
        return [not_done for entry in entries for not_done in entry.plan.not_done if Ref.parse(ref) in not_done.about]


def _fail_for(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but it fails for the object of this name that the server has."""

    def fails(*arguments: Any, **named: Any) -> Any:
        objects: Iterable[Any] = (getattr(argument, "pod", argument) for argument in (*arguments, *named.values()))
        for judged in objects:
            metadata: Any = getattr(judged, "metadata", None)
            if getattr(metadata, "name", "") == name and metadata.resource_version:
                raise OverflowError("date value out of range")
        return function(*arguments, **named)

    return fails


RULES_FOR_PODS = (
    "plimsoll.nodes.observing.pod_filters.filter_pod",
    "plimsoll.nodes.planning.state.snapshot_builder._get_group_key",
    "plimsoll.nodes.planning.equivalence.pod_classes._ClassBuilder._find_problem",
)


@pytest.mark.parametrize("rule", RULES_FOR_PODS)
def test_a_pending_pod_that_a_rule_fails_on_is_left_alone(rule: str, monkeypatch: pytest.MonkeyPatch):
    _break(monkeypatch, rule, "odd-0")
    with (
        capture_logs() as logs,
        SteppedCluster(nodeGroups=[group("g", target=1)], pods=[pods("odd", 1, cpu="3")]) as world,
    ):
        world.take({"apply": [replica_set("fine", 4, cpu="2")]}, {"loop": 3}, {"schedule": True}, {"loop": 2})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 2
        assert sum(node is not None for name, node in world.outcome()["pods"].items() if "fine" in name) == 4
        [reported, *_] = world.find_reasons("pod/default/odd-0")
        assert reported.reason.code == BAD_OBJECT
        assert "OverflowError: date value out of range" in reported.reason.message
    assert {line["object"] for line in logs if line["event"] == "loop.object_set_aside"} == {"default/odd-0"}


def _break(monkeypatch: pytest.MonkeyPatch, rule: str, name: str) -> None:
    """Let a rule fail for the object of this name."""
    monkeypatch.setattr(rule, _fail_for(name, pkgutil.resolve_name(rule)))


def test_the_node_of_a_pod_that_a_rule_fails_on_stays(monkeypatch: pytest.MonkeyPatch):
    _break(monkeypatch, "plimsoll.nodes.planning.scaledown.drainability.DrainRules.check_without_pdbs", "odd")
    odd = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "odd",
            "namespace": "default",
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
        },
        "spec": {"nodeName": "g-1", **containers("100m")},
    }
    with capture_logs() as logs, SteppedCluster(nodeGroups=[group("g", target=3)], objects=[odd]) as world:
        world.take({"loop": 12})
        assert list(world.outcome()["nodes"]) == ["g-1"]
        assert world.find_reasons("pod/default/odd")[0].reason.code == BAD_OBJECT
    assert any(line["event"] == "loop.object_set_aside" for line in logs)


def test_a_removal_that_fails_on_a_pod_ends_alone(monkeypatch: pytest.MonkeyPatch):
    """The plan accepted the node; the check before its deletion fails."""

    def fail(found: PodsOfNode, *arguments: Any, **named: Any) -> Any:
        if any(pod.metadata.name.startswith("odd") for pod in found.pods):
            raise OverflowError("date value out of range")
        return find_pods_to_evict(found, *arguments, **named)

    monkeypatch.setattr("plimsoll.nodes.actuation.deletion_batch.find_pods_to_evict", fail)
    odd = replica_set("odd", 1, cpu="100m")
    fine = replica_set("fine", 1, cpu="3")
    with SteppedCluster(nodeGroups=[group("g", target=4)]) as world:
        world.take({"apply": [odd]}, {"schedule": True}, {"apply": [fine]}, {"schedule": True}, {"loop": 14})
        [node] = [node for name, node in world.outcome()["pods"].items() if "odd" in name]
        assert node in world.outcome()["nodes"]
        assert len(world.outcome()["nodes"]) == 2, "the empty ones are gone"


def test_a_node_that_a_rule_fails_on_stays(monkeypatch: pytest.MonkeyPatch):
    _break(monkeypatch, "plimsoll.nodes.cluster_state.node_readiness._is_ready_for_kubernetes", "g-1")
    with SteppedCluster(nodeGroups=[group("g", target=3)]) as world:
        world.take({"loop": 12})
        assert list(world.outcome()["nodes"]) == ["g-1"]
        assert world.find_reasons("node/g-1")[0].reason.code == BAD_OBJECT


def test_a_changed_object_is_judged_again(monkeypatch: pytest.MonkeyPatch):
    with SteppedCluster(nodeGroups=[group("g", target=0)], pods=[pods("odd", 1)]) as world:
        with monkeypatch.context() as patched:
            _break(patched, RULES_FOR_PODS[0], "odd-0")
            world.take({"loop": 2})
            assert world.outcome()["nodeGroups"]["g"]["target"] == 0
        world.take({"loop": 2})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 0
        change = {"metadata": {"labels": {"a": "b"}}}
        world.run_now(world.client.merge_patch(Pod, "odd-0", change, namespace="default"))
        world.take({"loop": 1})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 1


@pytest.mark.parametrize("written", ["9999999999h", f"{'1' + '7' * 308}s" * 2])
def test_a_delay_out_of_range_is_ignored_and_named(written: str):
    odd = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "odd", "namespace": "default", "annotations": {DELAY: written}},
        "spec": containers("1"),
    }
    with SteppedCluster(nodeGroups=[group("g", target=0)], objects=[odd]) as world:
        world.take({"loop": 1})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 1
        reasons = {not_done.reason.code: not_done.reason.message for not_done in world.find_reasons("pod/default/odd")}
        assert reasons[BAD_FIELD] == (
            f"metadata.annotations[{DELAY}]: {quote(written)} is out of range; the longest duration is 2562047h47m16s; "
            "it is ignored"
        )


@pytest.mark.parametrize("grace_s", [300_000_000_000, LARGEST])
def test_a_pod_that_ends_after_the_end_of_time_stops_no_loop(grace_s: int):
    odd = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "odd", "namespace": "default", "finalizers": ["example.com/kept"]},
        "spec": {
            "nodeName": "g-0",
            "terminationGracePeriodSeconds": grace_s,
            "activeDeadlineSeconds": 2**31 - 1,
            **containers("100m"),
        },
    }
    with capture_logs() as logs, SteppedCluster(nodeGroups=[group("g", target=2)], objects=[odd]) as world:
        world.take({"delete": {"kind": "Pod", "name": "odd"}}, {"loop": 12})
        assert "g-1" not in world.outcome()["nodes"]
    assert not [line for line in logs if line.get("exc_info") or line["event"] == "loop.object_set_aside"]


def test_a_request_that_a_rule_fails_on_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    _break(monkeypatch, "plimsoll.nodes.requests.reader._Reader._build_view", "odd")
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default"}}
    objects = [{**template, "template": {"spec": containers("3")}}, _request("odd"), _request("fine")]
    options = {**OPTIONS, "enable-provisioning-requests": True, "provreq-provisioned-when": "requested"}
    with SteppedCluster(nodeGroups=[group("g", target=0)], objects=objects, options=options) as world:
        world.take({"loop": 3})
        assert world.outcome()["nodeGroups"]["g"]["target"] == 1
        assert world.find_reasons("provisioningrequest/default/odd")[0].reason.code == BAD_OBJECT


def _request(name: str) -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}],
        },
    }


def test_a_budget_that_a_rule_fails_on_protects_its_namespace(monkeypatch: pytest.MonkeyPatch):
    """Whatever it selects: the pod could move to the other node, and stays."""
    _break(monkeypatch, "plimsoll.nodes.planning.scaledown.pdbs._read_selector", "odd")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "another"}}},
    }
    for objects, nodes in (([], 1), ([budget], 2)):
        with SteppedCluster(nodeGroups=[group("g", target=2)], objects=objects) as world:
            small = replica_set("small", 2, cpu="100m", nodeSelector={})
            spread = {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "small"}},
            }
            small["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
            world.take({"apply": [small]}, {"schedule": True}, {"loop": 14})
            assert len(world.outcome()["nodes"]) == nodes
