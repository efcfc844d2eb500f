"""A whole simulation: a load curve through the closed loop, with samples and decisions. Deterministic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.local.tidb.load.curves import LoadCurve  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.simulation.tidb.closed_loop import ClosedLoop, SimulationSetup
from plimsoll.simulation.tidb.simulated_component import BASE
from plimsoll.tidb.model.components import Component, make_group_name
from plimsoll.tidb.model.reconcile_types import BringBack, CreateGroup, RaiseBase, Remove, Resize, TakeOut
from plimsoll.tidb.planning.api.defaults import get_scaled_component

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.local.tidb.load.curves import Load
    from plimsoll.simulation.tidb.closed_loop import ClosedLoopStep
    from plimsoll.simulation.tidb.simulated_component import Measured
    from plimsoll.tidb.model.reconcile_types import Act, Held

MOST_STEPS: Final = 200_000


class SimulationInput(Value):
    """What is simulated, over which load, and how often the controller reconciles."""

    setting: SimulationSetup
    curve: LoadCurve
    step_s: float = 30.0


class Sample(Value):
    """A component between two reconciles. `sizes` and `cores` are what is paid for after the reconcile."""

    at_s: float
    requested_cores: float
    served_cores: float
    cores: float
    sizes: dict[str, int]
    highest_usage: float
    average_usage: float
    stored_gib: float
    capacity_gib: float

    @property
    def instances(self) -> int:
        return sum(self.sizes.values())


class SimulatedDecision(Value):
    """An act or a hold, when it first occurred. `why` are sentences: of the decision, then of the planner."""

    at_s: float
    component: Component
    kind: str
    what: str
    added: int
    is_held: bool
    why: tuple[str, ...]


class ComponentSimulation(Value):
    """One component over the whole curve."""

    component: Component
    samples: tuple[Sample, ...]
    decisions: tuple[SimulatedDecision, ...]


def list_simulated_components(setting: SimulationSetup) -> tuple[Component, ...]:
    """Components that rules scale. External services cannot be simulated."""
    scaled = ((component, get_scaled_component(setting.effective, component)) for component in Component)
    return tuple(component for component, of in scaled if of is not None and of.external is None)


def simulate(
    run: SimulationInput, component: Component, *, on_step: Callable[[float], None] = lambda _: None
) -> ComponentSimulation:
    """Raises `InvalidInput` for a curve without duration, or with too many steps.

    `on_step` is called at every reconcile with the completed share.
    """
    steps = int(-(-run.curve.duration_s // run.step_s))
    if steps == 0:
        raise InvalidInput("has one point, so it lasts no time; write a second one")
    if steps > MOST_STEPS:
        raise InvalidInput(f"{steps} passes are more than {MOST_STEPS}; make the step longer")
    loop = ClosedLoop(component, run.setting)
    notes = _Notes(component)
    samples: list[Sample] = []
    for step in range(steps):
        on_step(step / steps)
        now_s = step * run.step_s
        load = run.curve.compute_load(now_s)
        measured = loop.simulated.measure(load, now_s=now_s)
        notes.note(loop.reconcile(load, now_s=now_s), at_s=now_s)
        samples.append(_sample(loop, load, measured, at_s=now_s))
    return ComponentSimulation(component=component, samples=tuple(samples), decisions=tuple(notes.decisions))


def _sample(loop: ClosedLoop, load: Load, measured: tuple[Measured, ...], *, at_s: float) -> Sample:
    """Load and usage as they were when the pass began."""
    cores = sum(instance.cores for instance in measured)
    served = sum(instance.usage * instance.cores for instance in measured)
    return Sample(
        at_s=at_s,
        requested_cores=load.tikv_cores if loop.component is Component.TIKV else load.tidb_cores,
        served_cores=served,
        cores=loop.simulated.cores,
        sizes=loop.simulated.sizes,
        highest_usage=max((instance.usage for instance in measured), default=0.0),
        average_usage=served / cores if cores else 0.0,
        stored_gib=load.storage_gib if loop.component is Component.TIKV else 0.0,
        capacity_gib=loop.simulated.storage_gib,
    )


class _Notes:
    """Decisions, each once: a pass that repeats the one before adds nothing."""

    def __init__(self, component: Component) -> None:
        self.decisions: list[SimulatedDecision] = []
        self._component = component
        self._last: frozenset[tuple[str, str]] = frozenset()

    def note(self, turned: ClosedLoopStep, *, at_s: float) -> None:
        found = list(self._find_decisions(turned, at_s=at_s))
        self.decisions += [
            decision for decision in found if decision.added or (decision.kind, decision.what) not in self._last
        ]
        self._last = frozenset((decision.kind, decision.what) for decision in found)

    def _find_decisions(self, turned: ClosedLoopStep, *, at_s: float) -> Iterator[SimulatedDecision]:
        planned = tuple(str(reason) for reason in turned.planned)
        for done in turned.done:
            kind, what = self._format_act(done.act), describe_act(done.act, added=done.added)
            yield self._build_decision(kind, what, at_s=at_s, added=done.added, why=(str(done.act.reason), *planned))
        for held in turned.held:
            yield self._build_held(held, at_s=at_s)
        if turned.refused:
            yield self._build_decision("", "cannot plan", at_s=at_s, is_held=True, why=(turned.refused,))

    def _format_act(self, act: Act) -> str:
        return BASE if isinstance(act, RaiseBase) else self._format_name(act.key)

    def _format_name(self, key: str) -> str:
        """A group by the end of its name: the beginning is the same for all."""
        if key == self._component.homogeneous_type:
            return BASE
        return key.removeprefix(make_group_name(self._component, ""))

    def _build_held(self, held: Held, *, at_s: float) -> SimulatedDecision:
        what = f"held: {held.reason.code}"
        return self._build_decision(self._format_name(held.key), what, at_s=at_s, is_held=True, why=(str(held.reason),))

    def _build_decision(
        self, kind: str, what: str, *, at_s: float, why: tuple[str, ...], added: int = 0, is_held: bool = False
    ) -> SimulatedDecision:
        return SimulatedDecision(
            at_s=at_s, component=self._component, kind=kind, what=what, added=added, is_held=is_held, why=why
        )


def describe_act(act: Act, *, added: int) -> str:
    """What is done to the instances of one kind."""
    match act:
        case CreateGroup():
            return f"new group of {act.plan.count}"
        case BringBack():
            return f"removal stopped, {act.replicas} stay"
        case Remove():
            return "group removed"
        case TakeOut() if not added:
            return f"one of {act.was} is being emptied"
        case RaiseBase() | Resize() | TakeOut():
            return f"{act.was} → {act.replicas}"
