"""The pods that a Service selects, and the Services that select a pod, by index."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controller.enqueue import list_states
from plimsoll.kube.informer.events import Key, Updated, get_key
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change
    from plimsoll.objects.api.services import Service

_PODS_BY_LABEL: Final = "endpoints: pods by label"


class SelectedPods:
    """Asks the shared informers of pods and services."""

    def __init__(self, services: Informer[Service], pods: Informer[Pod]) -> None:
        self._services = services
        self._pods = pods
        with suppress(InvalidInput):  # the other controller of this package has added it
            pods.add_index(
                _PODS_BY_LABEL, lambda pod: [(pod.metadata.namespace, *pair) for pair in pod.metadata.labels.items()]
            )

    def list_pods(self, service: Service) -> list[Pod]:
        """In the order of their names."""
        selector = service.spec.selector
        first = next(iter(sorted(selector.items())), None)
        if first is None:
            return []
        found = self._pods.cache.list_by_index(_PODS_BY_LABEL, (service.metadata.namespace, *first))
        matching = (pod for pod in found if selector.items() <= pod.metadata.labels.items())
        return sorted(matching, key=lambda pod: pod.metadata.name)

    def list_affected_services(self, change: Change[Any]) -> Iterable[Key]:
        """The Services that a change of a pod affects; none for a change that endpoints do not show."""
        services = self._services.cache.list(change.key.namespace)
        if not services:
            return ()
        states = [state for state in list_states(change) if isinstance(state, Pod)]
        if isinstance(change, Updated) and _extract_shown_fields(states[0]) == _extract_shown_fields(states[-1]):
            return ()
        return [get_key(service) for service in services if any(_selects(service, state) for state in states)]


def _selects(service: Service, pod: Pod) -> bool:
    selector = service.spec.selector
    return bool(selector) and selector.items() <= pod.metadata.labels.items()


def _extract_shown_fields(pod: Pod) -> tuple[Any, ...]:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
    return (
        metadata.labels,
        metadata.deletion_timestamp is None,
        (spec.node_name, spec.hostname, spec.subdomain),
        (status.phase, status.pod_ip, status.pod_ips),
        ready and (ready.status, ready.last_transition_time),
    )
