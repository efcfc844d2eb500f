"""The plan and the status of a daemon set. Pure.

First, missing pods are created and surplus pods deleted. Only when none are left, old pods are replaced, as many at a
time as the update strategy allows. Nodes are handled in the order of their names.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_readiness import is_available
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL
from plimsoll.local.controller_manager.workloads.daemon_sets.placement import (
    GENERATION_LABEL,
    EligibilityChecker,
    NodeEligibility,
    find_target_node,
)
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import scale_value
from plimsoll.objects.api.nodes import Node  # noqa: TC001 -- likewise
from plimsoll.objects.api.pods import Pod, is_pod_ready
from plimsoll.objects.api.workloads import DaemonSet, DaemonSetStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.meta import IntOrString

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class DaemonView(Value):
    """A daemon set and the cluster around it at one moment. `waiting`: nodes where a failed pod is left for a while."""

    daemon_set: DaemonSet
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    revision: str
    now: datetime
    waiting: frozenset[str] = frozenset()

    @property
    def generation(self) -> str:
        return self.daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")


class DaemonPlan(Value):
    """Nodes that need a pod, and pods to delete; `ended` are those of the latter that finished or failed."""

    create_on: tuple[str, ...] = ()
    delete: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()


def plan_daemon_set(view: DaemonView) -> DaemonPlan:
    if view.daemon_set.metadata.deletion_timestamp is not None:
        return DaemonPlan()
    by_node = _group_by_node(view.pods)
    plan = _manage(view, by_node)
    if plan.create_on or plan.delete or view.daemon_set.spec.update_strategy.type == "OnDelete":
        return plan
    return _plan_update(view, by_node)


def compute_daemon_set_status(view: DaemonView, *, collisions: int = 0) -> DaemonSetStatus:
    """The status of the set. Of several pods on a node the oldest counts."""
    eligibility = EligibilityChecker(view.daemon_set.spec.template)
    by_node = _group_by_node(view.pods)
    runs = {node.metadata.name for node in view.nodes if eligibility.check(node) is NodeEligibility.RUNS}
    there = [by_node[name][0] for name in sorted(runs) if name in by_node]
    misscheduled = sum(node.metadata.name in by_node for node in view.nodes if node.metadata.name not in runs)
    available = sum(_is_available(view, pod) for pod in there)
    return DaemonSetStatus(
        observed_generation=view.daemon_set.metadata.generation,
        desired_number_scheduled=len(runs),
        current_number_scheduled=len(there),
        updated_number_scheduled=sum(is_updated(view, pod) for pod in there),
        number_ready=sum(map(is_pod_ready, there)),
        number_available=available,
        number_unavailable=len(runs) - available,
        number_misscheduled=misscheduled,
        collision_count=collisions or view.daemon_set.status.collision_count,
        conditions=view.daemon_set.status.conditions,
    )


def is_updated(view: DaemonView, pod: Pod) -> bool:
    """Whether a pod was created from the current template."""
    labels = pod.metadata.labels
    is_same_count = bool(view.generation) and labels.get(GENERATION_LABEL) == view.generation
    return is_same_count or labels.get(REVISION_LABEL) == view.revision


# ---- a pod on every node


def _manage(view: DaemonView, by_node: dict[str, list[Pod]]) -> DaemonPlan:
    eligibility = EligibilityChecker(view.daemon_set.spec.template)
    create_on: list[str] = []
    delete: list[Pod] = []
    for node in sorted(view.nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        pods = by_node.get(name, [])
        place = eligibility.check(node)
        if place is NodeEligibility.RUNS and not pods:
            create_on.append(name)
        elif place is NodeEligibility.LEAVES:
            delete += [pod for pod in pods if not _is_leaving(pod)]
        else:
            delete += _select_surplus(view, name, [pod for pod in pods if not _is_leaving(pod)])
    names = {node.metadata.name for node in view.nodes}
    lost = [pod for pod in view.pods if not pod.spec.node_name and find_target_node(pod) not in names]
    delete += [pod for pod in lost if not _is_leaving(pod)]
    ended = tuple(
        pod for pod in delete if pod.status.phase in {"Failed", "Succeeded"} and find_target_node(pod) in names
    )
    return DaemonPlan(create_on=tuple(create_on), delete=tuple(delete), ended=ended)


def _select_surplus(view: DaemonView, node: str, pods: list[Pod]) -> list[Pod]:
    """Surplus pods of a node: ended pods, and all but the oldest; a surge keeps one old and one new pod."""
    delete = [pod for pod in pods if pod.status.phase == "Succeeded"]
    if node not in view.waiting:
        delete += [pod for pod in pods if pod.status.phase == "Failed"]
    running = [pod for pod in pods if pod.status.phase not in {"Failed", "Succeeded"}]
    if not _compute_surge(view, len(view.nodes)):
        return [*delete, *running[1:]]
    new = [pod for pod in running if pod.metadata.labels.get(REVISION_LABEL) == view.revision]
    old = [pod for pod in running if pod.metadata.labels.get(REVISION_LABEL) != view.revision]
    delete += [*new[1:], *old[1:]]
    if new and old and (not is_pod_ready(old[0]) or _is_available(view, new[0])):
        delete.append(old[0])
    return delete


# ---- new pods for old ones


def _plan_update(view: DaemonView, by_node: dict[str, list[Pod]]) -> DaemonPlan:
    eligibility = EligibilityChecker(view.daemon_set.spec.template)
    desired = sum(eligibility.check(node) is NodeEligibility.RUNS for node in view.nodes)
    surge = _compute_surge(view, desired)
    nodes = [(name, _find_new_and_old(view, by_node[name])) for name in sorted(by_node)]
    if surge:
        return _plan_update_by_surging(view, nodes, surge)
    return _plan_update_in_place(view, nodes, max_unavailable=_compute_max_unavailable(view, desired))


_Pair = tuple[Pod | None, Pod | None]


def _plan_update_in_place(
    view: DaemonView, nodes: Iterable[tuple[str, _Pair | None]], *, max_unavailable: int
) -> DaemonPlan:
    unavailable = 0
    replaced: list[Pod] = []
    candidates: list[Pod] = []
    for _, pair in nodes:
        new, old = (None, None) if pair is None else pair
        if (new is None) == (old is None):
            # None or both: this node's pods are being sorted out.
            unavailable += 1
        elif old is None:
            assert new is not None
            unavailable += not _is_available(view, new)
        elif not _is_available(view, old):
            replaced.append(old)
            unavailable += 1
        else:
            candidates.append(old)
    return DaemonPlan(delete=(*replaced, *candidates[: max(0, max_unavailable - unavailable)]))


def _plan_update_by_surging(view: DaemonView, nodes: Iterable[tuple[str, _Pair | None]], surge: int) -> DaemonPlan:
    surged = 0
    at_once: list[str] = []
    candidates: list[str] = []
    delete: list[Pod] = []
    for name, pair in nodes:
        if pair is None:
            surged += 1
            continue
        new, old = pair
        if old is None:
            continue
        if new is not None:
            if _is_available(view, new):
                delete.append(old)
            else:
                surged += 1
        elif _is_available(view, old):
            candidates.append(name)
        else:
            at_once.append(name)
    return DaemonPlan(create_on=(*at_once, *candidates[: max(0, surge - surged)]), delete=tuple(delete))


def _find_new_and_old(view: DaemonView, pods: list[Pod]) -> _Pair | None:
    """The pod of the present template and the one before it on a node; None if there are more of either."""
    staying = [pod for pod in pods if not _is_leaving(pod)]
    new = [pod for pod in staying if is_updated(view, pod)]
    old = [pod for pod in staying if not is_updated(view, pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return (new[0] if new else None, old[0] if old else None)


def _compute_surge(view: DaemonView, desired: int) -> int:
    rolling = view.daemon_set.spec.update_strategy.rolling_update
    if view.daemon_set.spec.update_strategy.type == "OnDelete" or rolling is None:
        return 0
    return _scale_up(rolling.max_surge, desired)


def _compute_max_unavailable(view: DaemonView, desired: int) -> int:
    """The number of nodes that may be unavailable; at least 1 without surge, so that an update makes progress."""
    rolling = view.daemon_set.spec.update_strategy.rolling_update
    return max(1, _scale_up(1 if rolling is None else rolling.max_unavailable, desired))


def _scale_up(value: IntOrString | None, total: int) -> int:
    """A number, or a percentage of `total` rounded up."""
    return 0 if value is None else scale_value(value, total, up=True)


# ---- pods


def _group_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The oldest first."""
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in sorted(pods, key=_get_age_key):
        if name := find_target_node(pod):
            by_node[name].append(pod)
    return dict(by_node)


def _get_age_key(pod: Pod) -> tuple[float, str]:
    made = pod.metadata.creation_timestamp
    return (0.0 if made is None else made.timestamp(), pod.metadata.name)


def _is_available(view: DaemonView, pod: Pod) -> bool:
    return is_available(pod, min_ready_s=view.daemon_set.spec.min_ready_seconds, now=view.now)


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None
