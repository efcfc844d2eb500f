"""The summary of a simulation: instances, hours, cost, and the comparison with a fixed size.

The fixed size is a cluster without an autoscaler: as many instances of its own size as keep the peak at the upper
thresholds, and no fewer than it has.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import Component  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.tidb.planning.api.defaults import get_component, get_scaled_component
from plimsoll.tidb.planning.api.sizes import read_requests_type

if TYPE_CHECKING:
    from plimsoll.simulation.tidb.closed_loop import SimulationSetup
    from plimsoll.simulation.tidb.simulator import ComponentSimulation, SimulationInput

_HOUR_S: Final = 3600.0
_GIB: Final = 2**30
_TOLERANCE: Final = 1e-9


class Thresholds(Value):
    """Thresholds of the cpu and storage rules; None where there is no rule."""

    cpu_high: float | None = None
    cpu_low: float | None = None
    storage_high: float | None = None


class FixedSize(Value):
    """A cluster that is always large enough for its peak."""

    instances: int
    cores: float
    core_hours: float
    cost: float | None


class Summary(Value):
    """The summary of one component. Cost is None without a price."""

    component: Component
    hours: float
    fewest_instances: int
    peak_instances: int
    instance_hours: float
    core_hours: float
    cost: float | None
    scale_outs: int
    scale_ins: int
    above_max_s: float
    """How long the busiest instance was above the upper cpu threshold."""
    unserved_core_hours: float
    """Work that arrived while instances were saturated."""
    fixed: FixedSize
    saved_share: float
    """Share of the fixed size's core hours; negative if the autoscaler costs more."""


def read_thresholds(setting: SimulationSetup, component: Component) -> Thresholds:
    scaled = get_scaled_component(setting.effective, component)
    rules = scaled.rules if scaled else {}
    cpu, storage = rules.get("cpu"), rules.get("storage")
    return Thresholds(
        cpu_high=cpu.max_threshold if cpu else None,
        cpu_low=cpu.min_threshold if cpu else None,
        storage_high=storage.max_threshold if storage else None,
    )


def summarise(simulated: ComponentSimulation, run: SimulationInput, *, price_per_core_hour: float | None) -> Summary:
    samples, hours = simulated.samples, run.step_s / _HOUR_S
    high = read_thresholds(run.setting, simulated.component).cpu_high
    above = [sample for sample in samples if high is not None and sample.highest_usage > high + _TOLERANCE]
    core_hours = sum(sample.cores for sample in samples) * hours
    fixed = _summarise_fixed(simulated, run, price_per_core_hour=price_per_core_hour)
    return Summary(
        component=simulated.component,
        hours=len(samples) * hours,
        fewest_instances=min(sample.instances for sample in samples),
        peak_instances=max(sample.instances for sample in samples),
        instance_hours=sum(sample.instances for sample in samples) * hours,
        core_hours=core_hours,
        cost=_compute_price(core_hours, price_per_core_hour),
        scale_outs=sum(decision.added > 0 for decision in simulated.decisions),
        scale_ins=sum(decision.added < 0 for decision in simulated.decisions),
        above_max_s=len(above) * run.step_s,
        unserved_core_hours=sum(max(0.0, sample.requested_cores - sample.served_cores) for sample in samples) * hours,
        fixed=fixed,
        saved_share=1 - core_hours / fixed.core_hours if fixed.core_hours else 0.0,
    )


def _summarise_fixed(
    simulated: ComponentSimulation, run: SimulationInput, *, price_per_core_hour: float | None
) -> FixedSize:
    component, samples = simulated.component, simulated.samples
    own = get_component(run.setting.base, component)
    assert own is not None, "validation saw to it"
    size, thresholds = read_requests_type(component.homogeneous_type, own), read_thresholds(run.setting, component)
    cores = float(size.cores)
    needed = [
        own.replicas,
        _count_instances(max(sample.requested_cores for sample in samples), cores, thresholds.cpu_high),
        _count_instances(
            max(sample.stored_gib for sample in samples), size.storage_bytes / _GIB, thresholds.storage_high
        ),
    ]
    instances = max(needed)
    core_hours = instances * cores * len(samples) * run.step_s / _HOUR_S
    return FixedSize(
        instances=instances,
        cores=instances * cores,
        core_hours=core_hours,
        cost=_compute_price(core_hours, price_per_core_hour),
    )


def _count_instances(amount: float, of_one: float, threshold: float | None) -> int:
    return math.ceil(amount / (of_one * threshold) - _TOLERANCE) if threshold and of_one else 0


def _compute_price(core_hours: float, price: float | None) -> float | None:
    return None if price is None else core_hours * price
