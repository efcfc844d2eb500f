"""Write-ahead intents: what an attempt for a ProvisioningRequest is about to do, and how it is rolled back. Pure.

A plan serves many requests with one scale-up per group. A node is attributed to the first request in the queue with a
pod on it (`planning.requests.cost_shares`), so the nodes of a group are in queue order: the first new nodes are the
first request's, and so on. An intent names its groups with the sizes before and after its own nodes. It is written
before the first call to the cloud provider (docs/design/nodes.md 3.3); recovery reads the provider, not these numbers,
to find out what was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.nodes.planning.requests.cost_shares import CostShare, share_costs
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.status import GroupStep, Intent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.nodes.requests.model import RequestView


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The part of one request in a plan that has room for all its pods."""

    view: RequestView
    share: CostShare = field(default_factory=CostShare)
    intent: Intent | None = None
    """None: nothing is added for it in this loop."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups scaled up for it, by their ids in the plan."""
        return frozenset(self.share.nodes)


def read_attempt_number(view: RequestView) -> int:
    """The number of the attempt that was begun, or of the next one."""
    begun, made = view.details.intent, view.details.attempts
    if begun is not None:
        return begun.attempt
    return made if view.phase is Phase.ARRIVING else made + 1


def build_attempts(
    plan: ScaleUpPlan, queue: Iterable[RequestView], pending: Sequence[PendingPods]
) -> dict[str, Attempt]:
    """The attempts of all requests that the plan serves, by name. `queue` is in serving order."""
    left = {key for unschedulable in plan.unschedulable for key in unschedulable.keys}
    parts = share_costs(plan, pending)
    taken = {scale_up.option.group: scale_up.before for scale_up in plan.scale_ups}
    made = {scale_up.option.group for scale_up in plan.scale_ups if not scale_up.option.exists}
    found: dict[str, Attempt] = {}
    for view in queue:
        if any(pending_pods.key in left for pending_pods in view.pods):
            continue
        share = parts.get(view.name, CostShare())
        intent = _build_intent(view, share, taken, made) if share.nodes else None
        found[view.name] = Attempt(view=view, share=share, intent=intent)
    return found


def _build_intent(view: RequestView, share: CostShare, taken: dict[str, int], made: set[str]) -> Intent:
    """The intent; groups of an earlier attempt keep the size they began with."""
    before = view.details.intent or Intent(attempt=read_attempt_number(view))
    groups = dict(before.groups)
    for group, nodes in share.nodes.items():
        first = groups[group].before if group in groups else taken[group]
        taken[group] += nodes
        groups[group] = GroupStep(before=first, after=taken[group])
    created = dict.fromkeys((*before.created, *(group for group in share.nodes if group in made)))
    return Intent(attempt=before.attempt, groups=groups, created=tuple(created))


# ---- what came of it


def count_added_before(view: RequestView, targets: Mapping[str, int]) -> dict[str, int]:
    """Nodes by group that an earlier attempt added, by the current sizes of the groups."""
    begun = view.details.intent
    if begun is None:
        return {}
    steps = begun.groups.items()
    added = {group: min(group_step.after, targets.get(group, 0)) - group_step.before for group, group_step in steps}
    return {group: nodes for group, nodes in added.items() if nodes > 0}


def compute_fraction_added(begun: Intent, added: Mapping[str, int], prices: Mapping[str, float]) -> float:
    """The fraction of the attempt's cost that its added nodes stand for."""
    increases = {group: group_step.after - group_step.before for group, group_step in begun.groups.items()}
    whole = sum(nodes * prices.get(group, 0.0) for group, nodes in increases.items())
    there = sum(nodes * prices.get(group, 0.0) for group, nodes in added.items())
    return there / whole if whole else float(bool(added))


def map_to_provider_groups(nodes: Mapping[str, int], results: Sequence[ScaleUpResult]) -> dict[str, int]:
    """The same nodes by provider group; a planned group that became several fills them in order.

    Groups that were certainly not scaled up are left out.
    """
    found: dict[str, int] = {}
    for group, count in nodes.items():
        left = count
        for result in results:
            if result.scale_up.option.group == group and may_have_scaled_up(result) and (left or not count):
                part = min(left, result.after - result.before)
                found[result.group] = found.get(result.group, 0) + part
                left -= part
    return found


def may_have_scaled_up(result: ScaleUpResult) -> bool:
    """A call without an answer may have been executed."""
    return result.is_done or result.is_unknown


def add_counts(some: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {key: some.get(key, 0) + others.get(key, 0) for key in (*some, *(key for key in others if key not in some))}


# ---- the way back


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPlan:
    """A request whose attempt failed: the nodes to give back by group, and the groups it created."""

    view: RequestView
    nodes: Mapping[str, int]
    created: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.created and not any(self.nodes.values())


def find_surplus(plan: ScaleUpPlan, remaining: ScaleUpPlan, failed: Sequence[Attempt]) -> dict[str, dict[str, int]]:
    """By failed request and group: nodes of the plan that are not needed by the `remaining` plan.

    Nodes beyond a request's own, because other pods moved together, are given back by the last request in the queue.
    """
    needed = {scale_up.option.group: scale_up.added for scale_up in remaining.scale_ups}
    left = {scale_up.option.group: scale_up.added - needed.get(scale_up.option.group, 0) for scale_up in plan.scale_ups}
    found: dict[str, dict[str, int]] = {}
    for attempt in failed:
        mine = {group: min(count, left[group]) for group, count in attempt.share.nodes.items()}
        left |= {group: left[group] - count for group, count in mine.items()}
        found[attempt.view.name] = mine
    for attempt in reversed(failed):
        for group in attempt.share.nodes:
            found[attempt.view.name][group] += left[group]
            left[group] = 0
    return found


def build_rollback_intents(
    returns: Sequence[RollbackPlan], sizes: Mapping[str, int], *, begun: Iterable[Intent] = ()
) -> dict[str, Intent]:
    """By request: the intent to write before anything is given back, with the size each group goes down to.

    `sizes` are the current sizes. `returns` is in queue order: the last request goes first, and each continues from
    where the one behind it ends, as do all after rollbacks that have already `begun`.
    """
    sizes = dict(sizes)
    for intent in begun:
        for group, step in intent.groups.items():
            if step.back is not None:
                sizes[group] = min(sizes.get(group, 0), step.back)
    found: dict[str, Intent] = {}
    for rollback in reversed(returns):
        known = rollback.view.details.intent or Intent(attempt=read_attempt_number(rollback.view))
        groups = dict(known.groups)
        for group in (*known.groups, *(name for name in rollback.nodes if name not in known.groups)):
            size, nodes = sizes.get(group, 0), rollback.nodes.get(group, 0)
            sizes[group] = max(0, size - nodes)
            step = groups.get(group) or GroupStep(before=size - nodes, after=size)
            groups[group] = structs.replace(step, back=sizes[group])
        created = tuple(dict.fromkeys((*known.created, *rollback.created)))
        found[rollback.view.name] = structs.replace(known, groups=groups, created=created)
    return found
