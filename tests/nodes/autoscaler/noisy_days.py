"""A cluster under a load that goes up and down with the day, with noise on it; and what its autoscaler made of it.

Several deployments, each scaled every minute as a horizontal autoscaler would: by the load of the moment, up at once,
down only when it was lower for five minutes. Everything is live, in virtual time, and from a seed.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.snapshot import NodeGroup, PendingPods, Snapshot
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.scheduling import ClusterView
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World
from tests.nodes.autoscaler.loop_scenarios import containers, group, scenario_of, steps_of

if TYPE_CHECKING:
    from tests.nodes.autoscaler.loop_scenarios import Json

TYPES: list[dict[str, Any]] = [
    {"name": "m-4", "cpu": 4, "memory": "16Gi", "price": 0.2},
    {"name": "m-8", "cpu": 8, "memory": "32Gi", "price": 0.42},
]
UNNEEDED_S = 600.0
_PRICES: dict[str, float] = {type_["name"]: type_["price"] for type_ in TYPES}
_TYPE = "node.kubernetes.io/instance-type"
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_SETTLING_MINUTES = 60
_STABLE_MINUTES = 5
"""How long a load must have been lower before replicas go."""


@dataclass(slots=True, kw_only=True)
class Service:
    """A deployment whose load has a mean, a swing over the day and noise."""

    name: str
    cpu_milli: int
    mean: float
    swing: float
    peak_hour: float
    noise: float
    wobble: float = 0.0
    lately: deque[int] = field(default_factory=lambda: deque(maxlen=_STABLE_MINUTES))

    def replicas(self, minute: int, entropy: SeededEntropy) -> int:
        """A slow random walk on top of the day's curve."""
        self.wobble = 0.97 * self.wobble + entropy.draw_uniform(-1.0, 1.0) * self.noise
        curve = 1 + self.swing * math.cos(2 * math.pi * (minute / 60 - self.peak_hour) / 24)
        self.lately.append(max(1, round(self.mean * curve * (1 + self.wobble))))
        return max(self.lately)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayResult:
    """What came of it."""

    removals: int
    regrown: int
    """Removals after which the group grew again within the unneeded time, whatever for."""
    regained: int
    """Those of them after which no pod asked for more than at the removal: the node went in vain."""
    cost: float
    bound: float
    most_nodes: int
    fewest_nodes: int

    @property
    def regained_share(self) -> float:
        return self.regained / max(1, self.removals)

    @property
    def over_bound(self) -> float:
        return self.cost / self.bound


def services() -> list[Service]:
    return [
        Service(name="web", cpu_milli=500, mean=100, swing=0.5, peak_hour=14, noise=0.03),
        Service(name="api", cpu_milli=1000, mean=40, swing=0.4, peak_hour=15, noise=0.04),
        Service(name="batch", cpu_milli=2000, mean=10, swing=0.6, peak_hour=2, noise=0.06),
        Service(name="cache", cpu_milli=250, mean=60, swing=0.2, peak_hour=12, noise=0.02),
    ]


class DayRun:
    """One run, minute by minute. The first hour makes the cluster, and is not counted."""

    def __init__(self, *, seed: str, first_hour: int, **options: Any) -> None:
        self._load = services()
        self._entropy = SeededEntropy(seed)
        self._minute = first_hour * 60
        self._scenario = scenario_of(
            (),
            {
                "world": "live",
                "machineTypes": TYPES,
                "nodeGroups": [
                    group("small", machineType="m-4", max=100),
                    group("large", machineType="m-8", max=100),
                ],
                "options": {"expander": "cost", **options},
            },
        )
        self._wanted: dict[str, int] = {}
        self._demands: list[dict[str, int]] = []
        """Replicas asked for by each service, by minute of the run."""
        self._nodes: list[int] = []
        self._cost = self._bound = 0.0
        self._in_hour: list[dict[str, int]] = []

    def run(self, hours: int) -> DayResult:
        plugs = Plugins(make_loop=ScenarioLoop)
        with World(self._scenario, plugs=plugs) as world:
            scenario_run = ScenarioRun(world, plugs)
            for passed in range(hours * 60):
                for step in steps_of(self._steps(), world=self._scenario.world):
                    scenario_run.take_step(step, path="day")
                if passed >= _SETTLING_MINUTES:
                    self._count(world.run_now(world.client.get_json("/api/v1/nodes"))["items"])
            return self._reported(scenario_run.finish().outcome)

    def _steps(self) -> list[Json]:
        wanted = {service.name: service.replicas(self._minute, self._entropy) for service in self._load}
        changed = [
            _deployment(service, wanted[service.name])
            for service in self._load
            if wanted[service.name] != self._wanted.get(service.name)
        ]
        self._wanted = wanted
        self._minute += 1
        self._demands.append(wanted)
        return [*([{"apply": changed}] if changed else []), {"advance": "1m"}]

    def _count(self, nodes: list[Json]) -> None:
        self._nodes.append(len(nodes))
        self._cost += sum(_PRICES[node["metadata"]["labels"][_TYPE]] for node in nodes) / 60
        self._in_hour.append(self._wanted)
        if len(self._in_hour) == 60:
            self._bound += _bound(self._load, self._in_hour)
            self._in_hour = []

    def _reported(self, outcome: Json) -> DayResult:
        assert not self._in_hour, "whole hours only"
        began = self._scenario.start
        calls = [(_minutes(call["time"], began), call) for call in outcome["providerCalls"] if call["ok"]]
        removals = [(at, call["group"]) for at, call in calls if call["call"] == "DeleteNodes" for _ in call["arg"]]
        counted = [removal for removal in removals if removal[0] >= _SETTLING_MINUTES]
        growths = [(at, call["group"]) for at, call in calls if call["call"] == "IncreaseSize"]
        after = [
            [when for when, grown in growths if grown == group and 0 < when - at <= UNNEEDED_S / 60]
            for at, group in counted
        ]
        in_vain = [
            any(self._asked_for_no_more(int(when), than=int(at)) for when in again)
            for (at, _), again in zip(counted, after, strict=True)
        ]
        return DayResult(
            removals=len(counted),
            regrown=sum(bool(again) for again in after),
            regained=sum(in_vain),
            cost=self._cost,
            bound=self._bound,
            most_nodes=max(self._nodes),
            fewest_nodes=min(self._nodes),
        )

    def _asked_for_no_more(self, minute: int, *, than: int) -> bool:
        """By every service: where one has grown and another shrunk, it is not the same demand."""
        before = self._demands[than]
        return all(replicas <= before[name] for name, replicas in self._demands[minute].items())


def _deployment(service: Service, replicas: int) -> Json:
    labels = {"app": service.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": service.name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": containers(f"{service.cpu_milli}m", "512Mi")},
        },
    }


def _bound(load: list[Service], minutes: list[dict[str, int]]) -> float:
    """What the mean load of an hour costs at least on an empty cluster."""
    pending = tuple(
        PendingPods(
            key=f"default/{service.name}",
            pod=msgspec.convert(
                {
                    "metadata": {"name": service.name, "namespace": "default"},
                    "spec": containers(f"{service.cpu_milli}m", "512Mi"),
                },
                Pod,
            ),
            count=math.ceil(sum(minute[service.name] for minute in minutes) / len(minutes)),
        )
        for service in load
    )
    groups = tuple(_empty_group(type_) for type_ in TYPES)
    snapshot = Snapshot(number=1, at=_NOON, view=ClusterView.from_objects([], []), pending=pending, groups=groups)
    return plan_scale_up(snapshot, read_options({"expander": "cost"})).lower_bound_per_hour


def _empty_group(sold: Json) -> NodeGroup:
    amounts = {"cpu": str(sold["cpu"]), "memory": sold["memory"], "pods": "110"}
    node = msgspec.convert(
        {"metadata": {"name": sold["name"]}, "status": {"capacity": amounts, "allocatable": amounts}}, Node
    )
    return NodeGroup(
        id=sold["name"], min_size=0, max_size=1000, target_size=0, template=node, price_per_hour=sold["price"]
    )


def _minutes(time: str, began: datetime) -> float:
    return (datetime.fromisoformat(time) - began).total_seconds() / 60
