"""Plans and explanations for people. Pure: builds lines and tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.cli.nodes.pending_names import find_owner
from plimsoll.cli.shared.output import Table
from plimsoll.core.formatting import format_money
from plimsoll.nodes.planning.explain.new_groups import NEW_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpPlan, UnschedulablePods
    from plimsoll.nodes.planning.scaleup.price_of_rules import PricedRule, RulePrices
    from plimsoll.simulation.plan.inputs import PlanInput

_NAMED: Final = 10
_ROWS: Final = 30
_WIDEST: Final = 44
_LEAST: Final = "the least possible for the pods on new nodes"
_EXACT: Final = 1e-4
"""A smaller gap between cost and lower bound is less than people see: 4.7799 is as good as 4.78."""


def format_plan(given: PlanInput, policy: Policy, answer: ScaleUpPlan) -> Iterator[str | Table]:
    """What is added, what it costs, which pods remain."""
    yield from _format_scale_ups(answer.scale_ups, given.currency)
    waiting = sum(pending.count for pending in given.snapshot.pending)
    if waiting:
        yield _summarise_placed(answer, waiting)
        yield _format_cost(given, answer)
    else:
        yield "no pods are pending: nothing is added"
    for why, count in Counter(given.set_aside.values()).items():
        yield f"{_format_pod_count(count)} not planned: {why}"
    yield from _format_unschedulable(given, answer.unschedulable)
    yield from _list_hints(given, policy, answer)
    if answer.verification_failures:
        yield f"{_count(answer.verification_failures, 'kind')} of pods were planned pod by pod"


def format_rule_prices(prices: RulePrices, currency: str) -> Iterator[str | Table]:
    """What each rule between pods costs."""
    if not prices.priced:
        yield "no pending pod has a rule about other pods"
        return
    yield "\nrules between pods, each compared with the plan without it:"
    for entry in prices.priced:
        yield f"  {entry.rule}: {_format_price(entry, currency)}"
    if prices.others:
        yield f"  {_count(prices.others, 'further rule')} on fewer pods were not priced"


def _format_price(entry: PricedRule, currency: str) -> str:
    sign = "+" if entry.cost_per_hour > 0 else "-" if entry.cost_per_hour < 0 else ""
    parts = [f"{sign}{format_money(abs(entry.cost_per_hour), currency)} per hour"]
    if entry.nodes:
        parts.append(_count(abs(entry.nodes), f"{'more' if entry.nodes > 0 else 'fewer'} node"))
    if entry.more_placed:
        parts.append(f"{_format_pod_count(entry.more_placed)} unschedulable because of it")
    return ", ".join(parts)


def _list_hints(given: PlanInput, policy: Policy, answer: ScaleUpPlan) -> Iterator[str | Table]:
    """Settings that the files may lack."""
    if not answer.unschedulable:
        return
    snapshot = given.snapshot
    if snapshot.machine_types and not policy.nap.enabled:
        yield "auto-provisioning is off, so machine types make no node group: options {node-autoprovisioning: true}"
    if not snapshot.machine_types and not snapshot.groups:
        yield "there is nothing to add: give nodeGroups, machineTypes or --catalogue"


def _format_scale_ups(scale_ups: Sequence[GroupScaleUp], currency: str) -> Iterator[str | Table]:
    from plimsoll.nodes.reporting.plan_json import get_machine_type

    rows = [
        (
            _shorten(scale_up.option.group),
            get_machine_type(scale_up.option) or "-",
            scale_up.option.zone or "-",
            f"{scale_up.before} -> {scale_up.after}" + (" (new)" if not scale_up.option.exists else ""),
            sum(pattern.nodes * sum(pattern.pods.values()) for pattern in scale_up.patterns),
            format_money(scale_up.added * scale_up.option.price_per_hour, currency),
        )
        for scale_up in scale_ups
    ]
    yield Table(("NODE GROUP", "MACHINE TYPE", "ZONE", "NODES", "PODS", "PER HOUR"), rows[:_ROWS])
    if len(rows) > _ROWS:
        more = scale_ups[_ROWS:]
        cost = sum(scale_up.added * scale_up.option.price_per_hour for scale_up in more)
        nodes = sum(scale_up.added for scale_up in more)
        price = format_money(cost, currency)
        yield f"and {_count(nodes, 'node')} in {len(more)} more groups for {price} per hour; -o json lists them all"
    causes = [cause for scale_up in scale_ups for cause in scale_up.reason.because]
    why = [*dict.fromkeys(str(cause) for cause in causes if cause.code == NEW_GROUP)]
    if why:
        yield f"groups are created because: {'; '.join(why[:_NAMED])}"
    yield from dict.fromkeys(str(cause) for cause in causes if cause.code != NEW_GROUP)


def _summarise_placed(answer: ScaleUpPlan, waiting: int) -> str:
    here = sum(sum(pods.values()) for pods in answer.existing.values())
    summary = f"{answer.scheduled} of {_format_pod_count(waiting)} are placed"
    if not answer.scheduled:
        return summary
    nodes = sum(scale_up.added for scale_up in answer.scale_ups)
    parts = [
        f"{here} on {_count(len(answer.existing), 'node')} that {'is' if len(answer.existing) == 1 else 'are'} there"
    ]
    parts = parts if here else []
    if nodes:
        parts.append(f"{answer.scheduled - here} on {_count(nodes, 'new node')}")
    return f"{summary}: {', '.join(parts)}"


def _format_cost(given: PlanInput, answer: ScaleUpPlan) -> str:
    cost, bound = answer.cost_per_hour, answer.lower_bound_per_hour
    if not answer.scale_ups:
        return "nothing is added"
    unknown = _without_price(given, answer.scale_ups)
    guessed = f"; estimated, no price is given for {_join_first(unknown)}" if unknown else ""
    if not cost:
        return f"costs nothing{guessed}"
    costs = f"costs {format_money(cost, given.currency)} per hour"
    if cost - bound <= _EXACT * cost:
        return f"{costs}, {_LEAST}{guessed}"
    if not bound:
        return f"{costs}{guessed}"
    percent = 100 * (cost / bound - 1)
    return f"{costs}, at most {percent:.2f} % above {_LEAST} ({format_money(bound, given.currency)}){guessed}"


def _without_price(given: PlanInput, scale_ups: Sequence[GroupScaleUp]) -> list[str]:
    types = {machine_type.name for machine_type in given.snapshot.machine_types if machine_type.price_per_hour is None}
    groups = {group.id for group in given.snapshot.groups if group.price_per_hour is None}
    found = (
        (scale_up.option.group if scale_up.option.group in groups else "")
        if scale_up.option.exists
        else (scale_up.option.machine_type if scale_up.option.machine_type in types else "")
        for scale_up in scale_ups
    )
    return [*dict.fromkeys(filter(None, found))]


# ---- requests


def format_requests(answers: Mapping[str, Any]) -> Iterator[str | Table]:
    """The answers to ProvisioningRequests, one line each."""
    if answers:
        yield ""
    for name, answer in [*answers.items()][:_NAMED]:
        last = answer["conditions"][1:2] or answer["conditions"]
        for condition in last:
            status = f"{condition['type']}={condition['status']}"
            yield f"request {name}: {status}, {condition['reason']}: {condition['message']}"
    if len(answers) > _NAMED:
        yield f"and {_count(len(answers) - _NAMED, 'more request')}; -o json lists them all"


# ---- remaining pods


def _format_unschedulable(given: PlanInput, remaining: Sequence[UnschedulablePods]) -> Iterator[str | Table]:
    if not remaining:
        return
    owners = {pending.key: find_owner(pending) for pending in given.snapshot.pending}
    yield ""
    for unschedulable in remaining:
        counts: dict[str, int] = {}
        for key, pods in unschedulable.keys.items():
            counts[owners[key]] = counts.get(owners[key], 0) + pods
        names = _join_first([_with_count(name, count) for name, count in counts.items()])
        yield f"{_format_pod_count(unschedulable.pods)} left: {names}"
        yield from (f"  {reason}" for reason in unschedulable.reasons)


def _with_count(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ({count})"


# ---- why not


def format_explanation(found: Mapping[str, Any], currency: str) -> Iterator[str | Table]:
    """What the plan does for the pods, then what fits and what does not."""
    yield f"{found['pod']}: {_format_outcome(found)}"
    if "problem" in found:
        yield f"no node can take it: {found['problem']}"
        return
    yield f"requests {', '.join(f'{name} {amount}' for name, amount in found['asks'].items())}"
    yield ""
    rows = [
        (
            "new group" if not option["exists"] else _shorten(option["group"]),
            option["machineType"] or "-",
            option["zone"] or "-",
            format_money(option["pricePerHour"], currency),
            "fits" if option["fits"] else "; ".join(option["reasons"]),
        )
        for option in found["offers"]
    ]
    rows += [
        ("new group", machine_type["machineType"], "-", "-", "; ".join(machine_type["reasons"]))
        for machine_type in found["machineTypes"]
    ]
    yield Table(("NODE GROUP", "MACHINE TYPE", "ZONE", "PER HOUR", "VERDICT"), rows)
    if not rows:
        yield "no node group can be scaled up and no machine type may be used"
    if found["nodes"]["total"]:
        yield f"existing nodes: {found['nodes']['message']}"
    for excluded in found["notOffered"]:
        yield f"not offered: {excluded['group'] or excluded['machineType'] or 'new groups'}: {excluded['reason']}"


def _format_outcome(found: Mapping[str, Any]) -> str:
    outcome = found["outcome"]
    parts = [f"{count} on node {node}" for node, count in outcome["existing"].items()]
    parts += [f"{count} on new nodes of {group}" for group, count in outcome["new"].items()]
    if outcome["remaining"]:
        parts.append(f"{outcome['remaining']} left ({'; '.join(outcome['reasons'])})")
    return f"{_format_pod_count(found['pods'])}, {', '.join(parts)}"


# ---- words


def _shorten(name: str) -> str:
    """A shortened name. Both ends matter: the prefix names the owner, the suffix the group."""
    half = (_WIDEST - 1) // 2
    return name if len(name) <= _WIDEST else f"{name[:half]}…{name[-half:]}"


def _join_first(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _format_pod_count(count: int) -> str:
    return _count(count, "pod")


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
