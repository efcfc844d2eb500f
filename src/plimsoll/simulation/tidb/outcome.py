"""The outcome of one component's simulation, for tables, plots and pages."""

from __future__ import annotations

from plimsoll.core.values import Value
from plimsoll.simulation.tidb.simulated_component import BASE
from plimsoll.simulation.tidb.simulator import ComponentSimulation  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.simulation.tidb.summary import Summary, Thresholds  # noqa: TC001 - as above


class SimulationOutcome(Value):
    """Samples, summary and thresholds of one component."""

    simulated: ComponentSimulation
    summary: Summary
    thresholds: Thresholds

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of instances, the base cluster first."""
        kinds = {kind for sample in self.simulated.samples for kind in sample.sizes}
        return (BASE, *sorted(kinds - {BASE}))
