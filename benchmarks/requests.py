"""ProvisioningRequests through controller and API server: the largest one, a batch of checks, many small ones.

One turn each, from the informers' caches to the last condition written, in process and in virtual time: the real
autoscaler on the API server in memory, over a cloud that answers from tables, so that no machine's coming is in the
figures. Processor time (docs/design/nodes.md N21, 4.4, N43); kernels are machine code.
"""

from __future__ import annotations

import logging
import resource
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import msgspec
import structlog

from benchmarks.autoscaler_clusters import ProvisioningProvider, TableGroup, TableProvider, node_of
from benchmarks.planning_clusters import Shape
from plimsoll.journal.memory import MemoryJournal
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.runtime.kernel_warmup import load_kernels
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.worlds.world import World
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.ports import LoopDependencies

Json = dict[str, Any]

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CHECK = "check-capacity.autoscaling.x-k8s.io"
# After what a kubelet keeps there is room for 32 and for 4 pods of one core.
_LARGE = Shape(name="m-32", cores=32.2, gib=140)
_SMALL = Shape(name="m-4", cores=4.2, gib=20)
_POD_SETS, _PODS_EACH = 32, 16_384
_CHECKS = 1_000
_FEW, _MANY = 500, 1_000
_TRIES = 3
_LINEAR = 2.6
"""Twice as many requests may take so many times as long."""


def rows() -> Iterator[dict[str, Any]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kernels.compile_all()
    load_kernels()
    yield from _largest_rows()
    yield from _check_rows()
    yield from _small_rows()


def _largest_rows() -> Iterator[dict[str, Any]]:
    """N21. The turn after it finds the request booked on nodes that are still to come."""
    templates = [_template(f"t{number}", memory="2Gi", label=str(number)) for number in range(_POD_SETS)]
    request = _request("r", {f"t{number}": _PODS_EACH for number in range(_POD_SETS)})
    group = TableGroup(id="g", shape=_LARGE, target=0)
    with RequestBenchmark(TableProvider([group]), [*templates, request]) as served:
        first = served.turn()
        assert (served.given("CapacityIsProvisioned"), group.calls) == (1, 1)
        pods, nodes = _POD_SETS * _PODS_EACH, group.target
        assert nodes == pods // 32, nodes
        reported = f"{pods:,} pods: accepted, planned, one call of +{nodes:,}, answered"
        yield _row("largest request, the turn that serves it", first.cpu_s, "s CPU", None, reported)
        yield _row("... planning in it", first.plan_s, "s CPU", 0.5, f"{first.plan_s / first.cpu_s:.0%} of the turn")
        yield _row("... memory of the process grown by", first.grown_mib, "MiB", 500, "in that turn")
        second = served.turn()
        assert (served.given("CapacityIsProvisioned"), group.calls) == (1, 1)
        yield _row("... the turn after it", second.cpu_s, "s CPU", None, "all of it booked on nodes that are to come")


def _check_rows() -> Iterator[dict[str, Any]]:
    requests = [_request(f"r{number}", {"t": 1}, kind=CHECK) for number in range(_CHECKS)]
    group = TableGroup(id="g", shape=_SMALL, target=0)
    nodes = [_node(f"n{number}", group) for number in range(_CHECKS // 4)]
    with RequestBenchmark(TableProvider([]), [_template("t"), *nodes, *requests]) as served:
        only = served.turn()
        assert served.given("CapacityIsFound") == _CHECKS
    reported = f"one pod each, on {len(nodes)} nodes that they fill; {only.cpu_s / _CHECKS * 1e3:.1f} ms a request"
    yield _row(f"{_CHECKS:,} checks in one batch", only.cpu_s, "s CPU", None, reported)


def _small_rows() -> Iterator[dict[str, Any]]:
    """N43. In turns, because a machine that does other things is now faster, now slower."""
    taken = [(_small(_FEW), _small(_MANY)) for _ in range(_TRIES)]
    few, many = (min(runs, key=lambda run: run.cpu_s) for runs in zip(*taken, strict=True))
    for count, took in ((_FEW, few), (_MANY, many)):
        reported = f"one call of +{count // 4}; {took.cpu_s / count * 1e3:.1f} ms a request; best of {_TRIES}"
        yield _row(f"{count:,} atomic requests of one pod", took.cpu_s, "s CPU", None, reported)
        yield _row("... planning in it", took.plan_s, "s CPU", None, f"{took.plan_s / took.cpu_s:.0%} of the turn")
    yield _row("twice as many atomic requests", many.cpu_s / few.cpu_s, "times", _LINEAR, "linear would be 2")


def _small(count: int) -> LoopCost:
    requests = [_request(f"r{number}", {"t": 1}) for number in range(count)]
    provider = ProvisioningProvider([_SMALL])
    with RequestBenchmark(provider, [_template("t"), *requests], **{"node-autoprovisioning": True}) as served:
        took = served.turn()
        assert served.given("CapacityIsProvisioned") == count
    (group,) = provider.groups.values()
    assert (group.calls, group.target) == (1, count // 4), "no more than they need"
    return took


# ---- the world


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCost:
    """What one turn took."""

    cpu_s: float
    plan_s: float
    grown_mib: float


class RequestBenchmark:
    """`with Served(provider, objects) as served:`; then `served.turn()`."""

    def __init__(self, provider: TableProvider, objects: Sequence[Json], **options: Any) -> None:
        self._provider = provider
        whole = {"options": {"enable-provisioning-requests": True, **options}, "objects": list(objects)}
        scenario = read_scenario(msgspec.json.encode(whole), source="bench")
        self._world = World(scenario, plugs=Plugins(make_loop=self._made), is_timed=True)

    def __enter__(self) -> Self:
        self._world.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._world.__exit__(*error)

    def _made(self, tools: LoopDependencies) -> TableLoop:
        self._loop = TableLoop(tools, self._provider)
        return self._loop

    def turn(self) -> LoopCost:
        self._world.run.advance_by(10)
        self._world.run_now(self._loop.wait_until_synced())
        held, began_s = _resident_mib(), time.process_time()
        turn = self._world.run_now(self._loop.turn())
        took_s = time.process_time() - began_s
        assert turn.ended_early is None, turn.ended_early
        return LoopCost(cpu_s=took_s, plan_s=turn.scale_up.plan_seconds, grown_mib=_resident_mib() - held)

    def given(self, reason: str) -> int:
        """Requests whose Provisioned is True for this reason, as the server has them."""
        listed = self._world.run_now(self._world.client.list(ProvisioningRequest))
        wanted = ("Provisioned", "True", reason)
        return sum(
            any(
                (condition.type, condition.status, condition.reason) == wanted
                for condition in request.status.conditions
            )
            for request in listed.items
        )


class TableLoop:
    """A `simulation.ports.Loop` over a cloud of tables; its stopwatch counts processor time."""

    def __init__(self, tools: LoopDependencies, provider: TableProvider) -> None:
        component = tools.components.build_component("cluster-autoscaler", manager="cluster-autoscaler")
        self._parts = NodeAutoscaler(
            Dependencies(
                client=component.client,
                informers=component.informers,
                recorder=component.recorder,
                provider=provider,  # type: ignore[arg-type]  # what it lacks is never asked
                configuration=ConfigMapConfig(tools.options, component.informers, naming=provider.naming),
                clock=tools.clock,
                run_planner=_inline,
                journal=MemoryJournal(),
                stopwatch_clock=ProcessorClock(),
                stepped=True,
            )
        )

    def list_services(self) -> Sequence[Service]:
        return self._parts.list_services()

    async def wait_until_synced(self) -> None:
        await self._parts.autoscaler.wait_until_synced()

    async def turn(self) -> LoopResult:
        return await self._parts.autoscaler.run_once()

    async def run_loop(self) -> dict[str, Any]:
        raise AssertionError("turns are asked for one by one")

    def get_metrics(self) -> dict[str, float]:
        return {}


class ProcessorClock:
    """Measures what this process used."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        return time.process_time()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"it only measures, and does not wait for {seconds} s")


async def _inline(plan: Callable[[], Any]) -> Any:
    return plan()


def _template(name: str, *, memory: str = "1Gi", label: str = "") -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": memory}}}
    template = {"metadata": {"labels": {"set": label}}, "spec": {"containers": [container]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}


def _request(name: str, sets: dict[str, int], *, kind: str = ATOMIC) -> Json:
    pod_sets = [{"podTemplateRef": {"name": template}, "count": count} for template, count in sets.items()]
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"provisioningClassName": kind, "podSets": pod_sets},
    }


def _node(name: str, group: TableGroup) -> Json:
    body: Json = msgspec.to_builtins(node_of(name, group))
    body["metadata"] = {"name": name, "labels": body["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Node", **body}


def _resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, value: float, unit: str, at_most: float | None, note: str) -> dict[str, Any]:
    met = None if at_most is None else value <= at_most
    target = "" if at_most is None else f"<= {at_most:g}"
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}
