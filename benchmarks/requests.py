"""ProvisioningRequests through controller and API server: the largest one, a batch of checks, many small ones.

One turn each, from the informers' caches to the last condition written, in process and in virtual time: the real
autoscaler, the API server in memory, the simulated cloud, whose machines come too late to be in the figures. Processor
time (specs/nodes.md N21, 4.4, N43); kernels are machine code.
"""

from __future__ import annotations

import logging
import resource
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from plimsoll.simulation.autoscaling import ScenarioLoop
from plimsoll.simulation.outcomes import outcome_of
from plimsoll.simulation.ports import Plugs
from plimsoll.simulation.scenario_files import read_scenario
from plimsoll.simulation.worlds import World
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Json = dict[str, Any]

ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CHECK = "check-capacity.autoscaling.x-k8s.io"
_POD_SETS, _PODS_EACH = 32, 16_384
_CHECKS = 1_000
_FEW, _MANY = 500, 1_000
_LINEAR = 2.6
"""Twice as many requests may take so many times as long."""
_ON: Json = {"enable-provisioning-requests": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one turn took, and what came of it."""

    cpu_s: float
    wall_s: float
    plan_s: float
    grown_mib: float
    outcome: Json

    def given(self, reason: str) -> int:
        """Requests whose Provisioned is True for this reason."""
        return sum(
            (one["type"], one["status"], one["reason"]) == ("Provisioned", "True", reason)
            for request in self.outcome["requests"].values()
            for one in request["conditions"]
        )

    @property
    def increases(self) -> list[int]:
        return [one["arg"] for one in self.outcome["providerCalls"] if one["call"].endswith("IncreaseSize")]


def rows() -> Iterator[dict[str, Any]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kernels.compile_all()
    yield from _largest_rows()
    yield from _check_rows()
    yield from _small_rows()


def _largest_rows() -> Iterator[dict[str, Any]]:
    """N21. The turn after it finds the request booked on nodes that are still to come."""
    templates = [_template(f"t{number}", memory="2Gi", number=number) for number in range(_POD_SETS)]
    request = _request("r", {f"t{number}": _PODS_EACH for number in range(_POD_SETS)})
    group = _group(max=20_000, template={"capacity": {"cpu": 32, "memory": "128Gi", "pods": 110}})
    first, second = _turns([*templates, request], group, turns=2)
    assert (first.given("CapacityIsProvisioned"), second.increases) == (1, [_POD_SETS * _PODS_EACH // 32])
    told = f"{_POD_SETS * _PODS_EACH:,} pods: accepted, planned, one call of +{second.increases[0]:,}, answered"
    yield _row("largest request, the turn that serves it", first.cpu_s, "s CPU", None, told)
    share = first.plan_s / first.wall_s
    yield _row("... planning in it", first.plan_s, "s", 0.5, f"{share:.0%} of the turn, both by the clock on the wall")
    yield _row("... memory of the process grown by", first.grown_mib, "MiB", 500, "in that turn")
    yield _row("... the turn after it", second.cpu_s, "s CPU", None, "all of it booked on nodes to come")


def _check_rows() -> Iterator[dict[str, Any]]:
    requests = [_request(f"r{number}", {"t": 1}, kind=CHECK) for number in range(_CHECKS)]
    group = _group(target=_CHECKS // 4, template={"capacity": {"cpu": 4, "memory": "16Gi", "pods": 110}})
    (only,) = _turns([_template("t"), *requests], group)
    assert only.given("CapacityIsFound") == _CHECKS
    told = f"one pod each, on {_CHECKS // 4} nodes that they fill; {only.cpu_s / _CHECKS * 1e3:.1f} ms a request"
    yield _row(f"{_CHECKS:,} checks in one batch", only.cpu_s, "s CPU", None, told)


def _small_rows() -> Iterator[dict[str, Any]]:
    """N43."""
    few, many = _small(_FEW), _small(_MANY)
    for count, answered in ((_FEW, few), (_MANY, many)):
        told = f"{len(answered.increases)} call, {count // 4} nodes; {answered.cpu_s / count * 1e3:.1f} ms a request"
        yield _row(f"{count:,} atomic requests of one pod", answered.cpu_s, "s CPU", None, told)
        share = answered.plan_s / answered.wall_s
        yield _row("... planning in it", answered.plan_s, "s", None, f"{share:.0%} of the turn")
    ratio = many.cpu_s / few.cpu_s
    yield _row("twice as many atomic requests", ratio, "times", _LINEAR, "linear would be 2")


def _small(count: int) -> Answered:
    requests = [_request(f"r{number}", {"t": 1}) for number in range(count)]
    machine = {"name": "n1-standard-4", "cpu": 4, "memory": "15Gi", "price": 0.189999}
    options = {"node-autoprovisioning": True, "max-cpu": 10 * count}
    (only,) = _turns([_template("t"), *requests], machineTypes=[machine], options=options)
    assert only.given("CapacityIsProvisioned") == count
    assert sum(only.increases) == count // 4, "no more than they need"
    return only


def _turns(objects: Sequence[Json], *groups: Json, turns: int = 1, options: Json | None = None, **more: Any) -> Any:
    whole = {"options": {**_ON, **(options or {})}, "nodeGroups": list(groups), "objects": list(objects), **more}
    scenario = read_scenario(msgspec.json.encode(whole), source="bench")
    with World(scenario, plugs=Plugs(make_loop=ScenarioLoop), is_timed=True) as world:
        answered = [_turn(world)]
        for _ in range(turns - 1):
            world.run.advance_by(10)
            answered.append(_turn(world))
        return answered


def _turn(world: World) -> Answered:
    assert world.loop is not None
    held, wall_s, cpu_s = _resident_mib(), time.perf_counter(), time.process_time()
    entry = world.at_once(world.loop.run_loop())
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    return Answered(
        cpu_s=cpu_s,
        wall_s=wall_s,
        plan_s=entry["scaleUp"]["planSeconds"],
        grown_mib=_resident_mib() - held,
        outcome=world.at_once(outcome_of(world, [entry])),
    )


def _template(name: str, *, memory: str = "1Gi", number: int = 0) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": memory}}}
    template = {"metadata": {"labels": {"set": str(number)}}, "spec": {"containers": [container]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template}


def _request(name: str, sets: dict[str, int], *, kind: str = ATOMIC) -> Json:
    pod_sets = [{"podTemplateRef": {"name": one}, "count": count} for one, count in sets.items()]
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"provisioningClassName": kind, "podSets": pod_sets},
    }


def _group(**more: Any) -> Json:
    return {"id": "g", "min": 0, "max": 1000, "target": 0, "bootSeconds": 3600, **more}


def _resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, value: float, unit: str, at_most: float | None, note: str) -> dict[str, Any]:
    met = None if at_most is None else value <= at_most
    target = "" if at_most is None else f"<= {at_most:g}"
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}
