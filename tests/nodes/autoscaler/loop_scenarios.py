"""Scenarios that tests of the running node autoscaler make by the dozen: as a file would hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.simulation.results import ScenarioResult
    from plimsoll.simulation.scenario import Scenario, Step, WorldKind

Json = dict[str, Any]

AUTOSCALER = "cluster-autoscaler"
TYPES = [
    {"name": f"n1-standard-{cores}", "cpu": cores, "memory": f"{3.75 * cores}Gi", "price": 0.04749975 * cores}
    for cores in (1, 2, 4, 8)
]
MARKS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")


def containers(cpu: str, memory: str = "1Gi") -> Json:
    return {"containers": [{"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}


def pods(name: str, count: int, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Json:
    template = {"spec": {**containers(cpu, memory), **spec}}
    return {"name": name, "namespace": "default", "count": count, "template": template}


def replica_set(name: str, replicas: int, *, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**containers(cpu, memory), **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def group(name: str, **more: Any) -> Json:
    return {"id": name, "min": 0, "max": 10, "machineType": "n1-standard-4", **more}


def crash_after(writes: int) -> Json:
    return {"crash": {"component": AUTOSCALER, "afterCalls": writes}}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedScenario:
    """How a world ended: what `plimsoll simulate` would print, and its nodes as the API server has them."""

    story: ScenarioResult
    nodes: tuple[Json, ...]

    @property
    def outcome(self) -> Json:
        return self.story.outcome

    @property
    def marked_nodes(self) -> list[str]:
        """Nodes with a taint of the autoscaler, or closed for pods."""
        return [node["metadata"]["name"] for node in self.nodes if node["spec"].get("unschedulable") or _marks_of(node)]

    @property
    def waiting_pods(self) -> list[str]:
        return [name for name, node in self.outcome["pods"].items() if node is None]

    def calls(self, *names: str) -> list[Json]:
        return [call for call in self.outcome["providerCalls"] if call["call"] in names]


def lived(*steps: Json, **scenario: Any) -> FinishedScenario:
    read = scenario_of(steps, scenario)
    plugs = Plugins(make_loop=ScenarioLoop)
    with World(read, plugs=plugs) as world:
        scenario_run = ScenarioRun(world, plugs)
        for number, step in enumerate(read.steps):
            scenario_run.take_step(step, path=f"steps[{number}]")
        nodes = world.run_now(world.client.get_json("/api/v1/nodes"))["items"]
        return FinishedScenario(story=scenario_run.finish(), nodes=tuple(nodes))


def scenario_of(steps: Iterable[Json], scenario: Json) -> Scenario:
    whole = {"machineTypes": TYPES, **scenario, "steps": list(steps)}
    return read_scenario(msgspec.json.encode(whole), source="test")


def steps_of(steps: Iterable[Json], *, world: WorldKind) -> tuple[Step, ...]:
    return scenario_of(steps, {"world": world}).steps


def _marks_of(node: Json) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints") or () if taint["key"] in MARKS]
