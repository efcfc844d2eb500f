"""What each rule between pods costs: the plan, solved again without the rule (`plimsoll plan --price-of-rules`).

A rule is a constraint or term with its selector, on all pending pods of a namespace that carry it. Each is left out
alone: two rules that force the same nodes open cost nothing one by one, and both together may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.errors import InvalidSelector
from plimsoll.nodes.model.node_labels import HOSTNAME, ZONE
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.affinity import PodAffinityTerm, TopologySpreadConstraint
    from plimsoll.objects.api.meta import LabelSelector
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Effort

MOST_PRICED: Final = 20
"""The number of rules that are priced, those on the most pods first; each takes another plan."""
_PLACES: Final = {HOSTNAME: "hosts", ZONE: "zones"}


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class PodRule:
    """A rule between pods, as users know it."""

    kind: str
    """`spread`, `affinity` or `anti-affinity`."""
    key: str
    selector: str
    namespace: str

    def __str__(self) -> str:
        over = _PLACES.get(self.key, self.key)
        words = {"spread": f"spread over {over} of", "affinity": f"together on {over} with"}
        return f"{words.get(self.kind, f'apart on {over} from')} {self.selector or 'all pods'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRule:
    """What a rule adds to the plan; negative if the plan without it places more pods."""

    rule: PodRule
    pods: int
    """Pods that carry it."""
    cost_per_hour: float
    nodes: int
    more_placed: int
    """Pods that only the plan without the rule places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePrices:
    """The prices of rules, the dearest first, and the number of rules that were not priced."""

    priced: tuple[PricedRule, ...]
    others: int


def price_rules(snapshot: Snapshot, policy: Policy, plan: ScaleUpPlan, *, effort: Effort | None = None) -> RulePrices:
    """Plan again without each rule."""
    carriers: dict[PodRule, int] = {}
    for pending in snapshot.pending:
        for rule in set(_iterate_rules(pending.pod)):
            carriers[rule] = carriers.get(rule, 0) + pending.count
    chosen = sorted(carriers, key=lambda rule: (-carriers[rule], rule))[:MOST_PRICED]
    priced = [_price(snapshot, policy, plan, rule, carriers[rule], effort) for rule in chosen]
    return RulePrices(
        priced=tuple(sorted(priced, key=lambda entry: (-entry.cost_per_hour, entry.rule))),
        others=len(carriers) - len(chosen),
    )


def _price(
    snapshot: Snapshot, policy: Policy, plan: ScaleUpPlan, rule: PodRule, pods: int, effort: Effort | None
) -> PricedRule:
    pending = tuple(replace(entry, pod=_remove(entry.pod, rule)) for entry in snapshot.pending)
    without = plan_scale_up(replace(snapshot, pending=pending), policy, effort=effort)
    return PricedRule(
        rule=rule,
        pods=pods,
        cost_per_hour=round(plan.cost_per_hour - without.cost_per_hour, 9),
        nodes=_count_nodes(plan) - _count_nodes(without),
        more_placed=without.scheduled - plan.scheduled,
    )


def _count_nodes(plan: ScaleUpPlan) -> int:
    return sum(scale_up.added for scale_up in plan.scale_ups)


def _iterate_rules(pod: Pod) -> Iterator[PodRule]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable in {"", "DoNotSchedule"}:
            yield _describe_spread(constraint, pod)
    affinity = pod.spec.affinity
    for kind, terms in (
        ("affinity", None if affinity is None else affinity.pod_affinity),
        ("anti-affinity", None if affinity is None else affinity.pod_anti_affinity),
    ):
        for term in () if terms is None else terms.required_during_scheduling_ignored_during_execution:
            yield _describe_term(kind, term, pod)


def _describe_spread(constraint: TopologySpreadConstraint, pod: Pod) -> PodRule:
    selector = _describe_selector(constraint.label_selector)
    return PodRule(kind="spread", key=constraint.topology_key, selector=selector, namespace=pod.metadata.namespace)


def _describe_term(kind: str, term: PodAffinityTerm, pod: Pod) -> PodRule:
    selector = _describe_selector(term.label_selector)
    return PodRule(kind=kind, key=term.topology_key, selector=selector, namespace=pod.metadata.namespace)


def _describe_selector(selector: LabelSelector | None) -> str:
    try:
        return str(parse_label_selector(selector))
    except InvalidSelector:
        return "an invalid selector"


def _remove(pod: Pod, rule: PodRule) -> Pod:
    """The pod without the rule."""
    spec = pod.spec
    constraints = tuple(
        constraint
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable not in {"", "DoNotSchedule"} or _describe_spread(constraint, pod) != rule
    )
    affinity = spec.affinity
    if affinity is not None and affinity.pod_affinity is not None:
        kept = _keep(affinity.pod_affinity.required_during_scheduling_ignored_during_execution, "affinity", rule, pod)
        near = structs.replace(affinity.pod_affinity, required_during_scheduling_ignored_during_execution=kept)
        affinity = structs.replace(affinity, pod_affinity=near)
    if affinity is not None and affinity.pod_anti_affinity is not None:
        required = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        kept = _keep(required, "anti-affinity", rule, pod)
        apart = structs.replace(affinity.pod_anti_affinity, required_during_scheduling_ignored_during_execution=kept)
        affinity = structs.replace(affinity, pod_anti_affinity=apart)
    return structs.replace(pod, spec=structs.replace(spec, topology_spread_constraints=constraints, affinity=affinity))


def _keep(terms: tuple[PodAffinityTerm, ...], kind: str, rule: PodRule, pod: Pod) -> tuple[PodAffinityTerm, ...]:
    return tuple(term for term in terms if _describe_term(kind, term, pod) != rule)
