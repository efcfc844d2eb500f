"""One component's simulation with all that is told of it: what tables, pictures and pages are made from."""

from __future__ import annotations

from plimsoll.core.values import Value
from plimsoll.simulation.tidb.played_components import BASE
from plimsoll.simulation.tidb.runs import Simulated  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.simulation.tidb.summaries import (
    Summary,  # noqa: TC001
    Thresholds,  # noqa: TC001
)


class Outcome(Value):
    """Of one component."""

    simulated: Simulated
    summary: Summary
    thresholds: Thresholds

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of instances: the cluster's own first, as the ground that groups stand on."""
        kinds = {kind for sample in self.simulated.samples for kind in sample.sizes}
        return (BASE, *sorted(kinds - {BASE}))
