"""Groups beside a cluster that an autoscaler no longer names: how they are told of together with those it has. Pure.

`spec.cluster.name` may be edited while groups stand. `autoscaler` lets those of the cluster before go, as if that were
not scaled any more, and joins here what came of it. Where the cluster itself is gone, or its PD cannot be asked,
nothing can be drained: its groups are told of, and stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.plans import Result
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reasons import ReasonCode, told
from plimsoll.tidb.model.reconcile_result import ActDone, ComponentResult
from plimsoll.tidb.model.reconcile_types import EXTERNAL, Decided, Held, Remove
from plimsoll.tidb.observing.component_state import clusters_of
from plimsoll.tidb.wire.annotations import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.observing.observer import Observed


def stranded(former: Observed, *, why: str) -> tuple[ComponentResult, ...]:
    """Of groups that cannot be drained: removals that are blocked. `why` names the cluster they were made for."""
    status, found = former.autoscaler.status, []
    reason = told(ReasonCode.NOT_MANAGED, f"it was made for {why}; it is left as it is")
    for component in Component:
        entries = status.tidb if component is Component.TIDB else status.tikv
        made = [raw.metadata for raw in clusters_of(former, component)]
        clusters = {meta.labels.get(GROUP, EXTERNAL): meta.name for meta in made}
        acts = [Remove(key=key, group=name, reason=reason) for key, name in sorted(clusters.items())]
        blocked = [
            ActDone(act=remove, cluster=remove.group, result=Result.HELD_BACK, reason=reason, is_blocked=True)
            for remove in acts
        ]
        found.append(
            ComponentResult(
                component=component,
                decided=Decided(held=tuple(Held(key=remove.key, reason=reason) for remove in acts)),
                done=tuple(blocked),
                status={key: entry for key, entry in entries.items() if key in clusters},
                clusters=clusters,
            )
        )
    return tuple(component_result for component_result in found if component_result.clusters)


def joined(own: Iterable[ComponentResult], former: Iterable[ComponentResult]) -> tuple[ComponentResult, ...]:
    """One result of each component, with what is told of its groups beside a cluster before."""
    found = {result.component: result for result in own}
    for component_result in former:
        found[component_result.component] = _joined(found.get(component_result.component), component_result)
    return tuple(found[component] for component in Component if component in found)


def _joined(own: ComponentResult | None, former: ComponentResult) -> ComponentResult:
    """Where both have a group of one name, status tells of the one that is scaled."""
    own = own or ComponentResult(component=former.component)
    theirs = former.clusters.keys() - own.clusters.keys() - own.decided.status.keys()
    status = {key: entry for key, entry in own.status.items() if key not in theirs}
    message = "it was made for another cluster than the one that is named now, and goes"
    untold = sorted(key for key in former.clusters if not _is_told(former, key))
    notes = [Held(key=key, reason=told(ReasonCode.NOT_MANAGED, message)) for key in untold]
    decided = replace(
        own.decided,
        acts=(*own.decided.acts, *former.decided.acts),
        held=(*own.decided.held, *former.decided.held, *notes),
    )
    return replace(
        own,
        decided=decided,
        done=(*own.done, *former.done),
        status=dict(sorted({**status, **{key: former.status[key] for key in theirs & former.status.keys()}}.items())),
        clusters={**former.clusters, **own.clusters},
        problem="; ".join(one for one in (own.problem, former.problem) if one),
    )


def _is_told(former: ComponentResult, key: str) -> bool:
    return any((held.key, held.reason.code) == (key, ReasonCode.NOT_MANAGED) for held in former.decided.held)
