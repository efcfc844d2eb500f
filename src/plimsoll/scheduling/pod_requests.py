"""What a pod requests of a node: the formula of kube-scheduler (docs/design/nodes.md 6.2).

The arithmetic must equal kube-scheduler's to the unit, or pods would stay pending on nodes that were added for them.

For each resource, containers and sidecars (restartable init containers) run together and are summed. An init container
runs beside the sidecars started before it. The request is the larger of both, or the pod-level request, plus overhead.
A limit without a request counts as the request. Every pod needs one of `pods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import CPU, MEMORY, PODS, ZERO, ResourceVector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.meta import ResourceList
    from plimsoll.objects.api.pods import Container, ContainerStatus, Pod, ResourceRequirements


_HUGE_PAGES: Final = "hugepages-"


_ONE_POD: Final = ResourceVector({PODS: 1})


def compute_pod_demand(pod: Pod) -> ResourceVector:
    """What the pod takes on its node; `InvalidQuantity` names the field that cannot be read."""
    spec = pod.spec
    granted = _Granted(pod)
    running = ZERO
    for index, container in enumerate(spec.containers):
        running += granted.get_requests(container, f"spec.containers[{index}].resources", sidecar=True)
    starting = sidecars = ZERO
    for index, container in enumerate(spec.init_containers):
        sidecar = container.restart_policy == "Always"
        own = granted.get_requests(container, f"spec.initContainers[{index}].resources", sidecar=sidecar)
        if sidecar:
            sidecars += own  # all of them are in `need` below, so none of them can be the peak while starting
        else:
            starting = starting.take_larger(own + sidecars)
    need = running + sidecars
    if spec.init_containers:
        need = need.take_larger(starting)
    if spec.resources is not None:
        need = _apply_pod_level(need, spec.resources)
    if spec.overhead:
        need += _read_requests(spec.overhead, path="spec.overhead")
    return need + _ONE_POD


class _Granted:
    """Requests of a pod's containers, with what an in-place resize has granted them so far."""

    def __init__(self, pod: Pod) -> None:
        statuses: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
        self._statuses = {
            container_status.name: container_status
            for container_status in statuses
            if container_status.allocated_resources or container_status.resources is not None
        }
        self._infeasible = any(
            condition.type == "PodResizePending" and condition.status == "True" and condition.reason == "Infeasible"
            for condition in pod.status.conditions
        )

    def get_requests(self, container: Container, path: str, *, sidecar: bool) -> ResourceVector:
        """The larger of what is asked and what is held; a resize the node has called infeasible is not asked."""
        requested = _parse_requests(container.resources, path)
        status = self._statuses.get(container.name) if sidecar else None
        if status is None:
            return requested
        held = ResourceVector.from_quantities(status.allocated_resources, path=f"status {container.name}")
        if status.resources is not None:
            acting = ResourceVector.from_quantities(status.resources.requests, path=f"status {container.name}")
            held = held.take_larger(acting)
        return held if self._infeasible else requested.take_larger(held)


def _parse_requests(resources: ResourceRequirements, path: str) -> ResourceVector:
    if not resources.limits:
        return _read_requests(resources.requests, path=f"{path}.requests") if resources.requests else ZERO
    requests = _read_requests(resources.requests, path=f"{path}.requests")
    limits = _read_requests(resources.limits, path=f"{path}.limits")
    return requests.replace(limits, names=[name for name in limits if name not in resources.requests])


def _read_requests(quantities: ResourceList, *, path: str) -> ResourceVector:
    """What is asked for. Less than nothing would make room on a full node."""
    vector = ResourceVector.from_quantities(quantities, path=path)
    for name, amount in vector.items():
        if amount < 0:
            raise InvalidQuantity("must be greater than or equal to 0", path=f"{path}[{name}]")
    return vector


def _apply_pod_level(need: ResourceVector, resources: ResourceRequirements) -> ResourceVector:
    """Pod-level requests replace the sum of the containers; a pod-level limit counts where no container requests."""
    path = "spec.resources"
    requests = _read_requests(resources.requests, path=f"{path}.requests")
    limits = _read_requests(resources.limits, path=f"{path}.limits")
    requested = [name for name in resources.requests if _is_pod_level(name)]
    limits_only = [name for name in limits if name not in resources.requests and _is_pod_level(name)]
    # Huge pages are never overcommitted: what the pod may use it also requests, whatever its containers say.
    limited = [name for name in limits_only if name not in need or name.startswith(_HUGE_PAGES)]
    return need.replace(requests, names=requested).replace(limits, names=limited)


def _is_pod_level(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(_HUGE_PAGES)
