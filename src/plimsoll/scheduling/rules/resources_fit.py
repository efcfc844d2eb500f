"""Whether a node has enough free resources for a pod (kube-scheduler's NodeResourcesFit)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import PODS, ZERO, ResourceVector
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.verdicts import Refusal, Rule, refuse_malformed

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

RESOURCES_FIT: Final = "NodeResourcesFit"
DYNAMIC_RESOURCES: Final = "DynamicResources"


class _ResourcesFit:
    """The pod's need against allocatable minus what the node's pods take."""

    def __init__(self, demand: ResourceVector) -> None:
        self._demand = demand

    def refuse(self, place: NodeState) -> Refusal | None:
        if place.problem:
            return refuse_malformed(RESOURCES_FIT, place.problem)
        if self._demand.fits_within(place.free):
            return None
        free = place.free
        short = sorted(self._demand.find_lacking(free), key=lambda name: name != PODS)
        never = any(name != PODS and self._demand[name] > place.allocatable[name] for name in short)
        return Refusal(
            plugin=RESOURCES_FIT,
            messages=tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in short),
            resolvable=not never,
            detail="; ".join(f"{name} {_format_amounts(self._demand, free, name)}" for name in short),
        )


def _format_amounts(demand: ResourceVector, free: ResourceVector, name: str) -> str:
    only = (name,)
    needed = ZERO.replace(demand, names=only).to_json()
    left = ZERO.replace(free, names=only).to_json()
    return f"needs {needed.get(name, '0')}, {left.get(name, '0')} left"


def prepare_resources_fit(pod: Pod, _view: ClusterView) -> Rule | Refusal:
    try:
        return _ResourcesFit(compute_pod_demand(pod))
    except InvalidQuantity as error:
        return refuse_malformed(RESOURCES_FIT, str(error))


def prepare_dynamic_resources(pod: Pod, _view: ClusterView) -> Refusal | None:
    """Claims on devices are not simulated; a pod that has some is refused rather than placed wrongly."""
    if not pod.spec.resource_claims:
        return None
    names = ", ".join(claim.name for claim in pod.spec.resource_claims)
    return Refusal(
        plugin=DYNAMIC_RESOURCES,
        messages=("pod has spec.resourceClaims, and dynamic resource allocation is not supported",),
        detail=names,
    )
