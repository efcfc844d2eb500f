"""Groups of a cluster that an autoscaler no longer names, and how their results are merged with the present ones. Pure.

`spec.cluster.name` may be edited while groups exist. The reconciler removes the groups of the former cluster as if it
were no longer scaled. Where that cluster is gone or its PD cannot be asked, nothing can be drained: its groups are
reported and stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Result
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reasons import ReasonCode, make_reason
from plimsoll.tidb.model.reconcile_result import ActResult, ComponentResult
from plimsoll.tidb.model.reconcile_types import EXTERNAL, Decision, Held, Remove
from plimsoll.tidb.observing.component_state import find_clusters
from plimsoll.tidb.wire.annotations import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.observing.observer import Observed


def report_undrainable(former: Observed, *, cause: str) -> tuple[ComponentResult, ...]:
    """Results for groups that cannot be drained: blocked removals. `cause` names their cluster."""
    status, found = former.autoscaler.status, []
    reason = make_reason(ReasonCode.NOT_MANAGED, f"it was created for {cause}; it stays as it is")
    for component in Component:
        entries = status.tidb if component is Component.TIDB else status.tikv
        made = [raw.metadata for raw in find_clusters(former, component)]
        clusters = {meta.labels.get(GROUP, EXTERNAL): meta.name for meta in made}
        acts = [Remove(key=key, group=name, reason=reason) for key, name in sorted(clusters.items())]
        blocked = [
            ActResult(act=remove, cluster=remove.group, result=Result.HELD_BACK, reason=reason, is_blocked=True)
            for remove in acts
        ]
        found.append(
            ComponentResult(
                component=component,
                decision=Decision(held=tuple(Held(key=remove.key, reason=reason) for remove in acts)),
                done=tuple(blocked),
                status={key: entry for key, entry in entries.items() if key in clusters},
                clusters=clusters,
            )
        )
    return tuple(component_result for component_result in found if component_result.clusters)


def merge_results(own: Iterable[ComponentResult], former: Iterable[ComponentResult]) -> tuple[ComponentResult, ...]:
    """One result per component, with the results of groups of a former cluster merged in."""
    found = {result.component: result for result in own}
    for component_result in former:
        found[component_result.component] = _join_results(found.get(component_result.component), component_result)
    return tuple(found[component] for component in Component if component in found)


def _join_results(own: ComponentResult | None, former: ComponentResult) -> ComponentResult:
    """The merged result. Where both have a group of one name, the status is that of the present cluster."""
    own = own or ComponentResult(component=former.component)
    theirs = former.clusters.keys() - own.clusters.keys() - own.decision.status.keys()
    status = {key: entry for key, entry in own.status.items() if key not in theirs}
    message = "it was created for a cluster that the autoscaler no longer names, and is removed"
    unreported = sorted(key for key in former.clusters if not _is_reported(former, key))
    notes = [Held(key=key, reason=make_reason(ReasonCode.NOT_MANAGED, message)) for key in unreported]
    decided = replace(
        own.decision,
        acts=(*own.decision.acts, *former.decision.acts),
        held=(*own.decision.held, *former.decision.held, *notes),
    )
    return replace(
        own,
        decision=decided,
        done=(*own.done, *former.done),
        status=dict(sorted({**status, **{key: former.status[key] for key in theirs & former.status.keys()}}.items())),
        clusters={**former.clusters, **own.clusters},
        problem="; ".join(problem for problem in (own.problem, former.problem) if problem),
    )


def _is_reported(former: ComponentResult, key: str) -> bool:
    return any((held.key, held.reason.code) == (key, ReasonCode.NOT_MANAGED) for held in former.decision.held)
