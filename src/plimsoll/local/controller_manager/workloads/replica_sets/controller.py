"""The replica set controller: keeps the desired number of pods of a template, and their status.

One reconciliation: read the set and its pods, adopt and release pods, create or delete what the plan contains, write
the status. While the cache misses earlier writes, nothing is created or deleted: nothing is done twice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates_in_any_order,
    list_managed_by,
    sort_oldest_first,
)
from plimsoll.kube.controlled_objects.pod_control import (
    PodControl,
    read_template,
    run_concurrently,
    run_slow_start_batch,
)
from plimsoll.kube.controlled_objects.pod_readiness import (
    is_active,
    is_more_than_status,
    select_active_pods,
)
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Deleted, Key, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.local.controller_manager.workloads.controlled_objects.status_patches import count_fields, encode_condition
from plimsoll.local.controller_manager.workloads.replica_sets.plan import (
    Failure,
    compute_next_look_s,
    compute_replica_set_status,
    get_desired_replicas,
    plan_replica_set,
)
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import ReplicaSet
from plimsoll.objects.owners import find_controller
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.core.errors import PlimsollError
    from plimsoll.core.selectors import LabelSelector
    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component, Components
    from plimsoll.local.controller_manager.workloads.replica_sets.plan import ReplicaPlan
    from plimsoll.objects.api.workloads import ReplicaSetStatus
    from plimsoll.objects.codec.decoding import RawObject

NAME: Final = "replicaset-controller"
STATUS_DELAY_S: Final = 0.02
"""How long news of pods' readiness are gathered: pods that start together make one status, not one each."""
# A turn looks at all pods of a set: the more they are, the more news each turn should be for.
_DELAY_BY_POD_S: Final = 0.002
_LONGEST_DELAY_S: Final = 1.0
_FEW: Final = 10


def build_replica_set_services(components: Components, *, patience_s: float = 0.0) -> list[Service]:
    """`patience_s`: how long a status write may be delayed, so that one write covers many pods."""
    controller = ReplicaSetController(components.build_component(NAME), patience_s=patience_s).controller
    return [Service(name=controller.name, run=controller.run)]


class _Settled(NamedTuple):
    """A set about which nothing is left to do while it and its pods are these very states of them."""

    found: RawObject[ReplicaSet]
    active: list[Pod]


class ReplicaSetController:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component, *, workers: int = 5, patience_s: float = 0.0) -> None:
        self._client = component.client
        self._clock = component.clock
        self._patience_s = patience_s
        self._resource = component.client.calls.get_resource(ReplicaSet)
        self._sets = component.informers.get_raw_informer(ReplicaSet)
        self._pods = component.informers.get_informer(Pod)
        index_by_controller(self._sets)
        index_by_controller(self._pods)
        self._own_writes = Expectations(self._pods, clock=component.clock)
        self._making = PodControl(component.client, component.recorder, self._resource, self._own_writes)
        self._adoption = ControllerRefManager(component.client, Pod, self._resource)
        self._settled: dict[Key, _Settled] = {}
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(raw) for raw in self._sets.cache],
            settings=ControllerSettings(workers=workers),
        )
        enqueue_on(self._sets, self.controller, get_own_key)
        self.controller.add_source(self._pods)
        self._pods.add_handler(self._on_pod_change, name=NAME)

    async def reconcile(self, key: Key) -> Done | Again:
        found = self._sets.cache.get(key.name, key.namespace)
        if found is None:
            self._settled.pop(key, None)
            return Done()
        replica_set = found.view
        metadata = replica_set.metadata
        if not self._own_writes.are_fulfilled(metadata.uid):
            return Again(after_s=RECHECK_S)
        active = select_active_pods(list_candidates_in_any_order(self._pods, metadata))
        if self._is_settled(key, found, active):
            return Done()
        selector = parse_label_selector(replica_set.spec.selector)
        pods = await self._adoption.claim(metadata, selector, sort_oldest_first(active))

        plan = plan_replica_set(replica_set, pods, self._clock.now(), related=self._list_related(replica_set, pods))
        error = await self._apply_plan(found, plan)
        if error is None and self._own_writes.has_any(metadata.uid):
            # The pods are not the ones that are there by now: the status is written when those are seen.
            return Again(after_s=self._compute_settling_s(key))
        is_reported = await self._update_status(replica_set, pods, error)
        if error is not None:
            raise error
        wait_s = compute_next_look_s(replica_set, pods, self._clock.now())
        if wait_s is not None:
            return Again(after_s=wait_s)
        if is_reported and len(pods) == len(active):
            self._settled[key] = _Settled(found, active)
        return Done()

    def _is_settled(self, key: Key, found: RawObject[ReplicaSet], active: list[Pod]) -> bool:
        """Whether nothing has changed since the last reconciliation: often only an uncounted pod has disappeared."""
        settled = self._settled.get(key)
        return settled is not None and settled.found is found and settled.active == active

    async def _apply_plan(self, found: RawObject[ReplicaSet], plan: ReplicaPlan) -> PlimsollError | None:
        metadata = found.view.metadata
        if plan.create:
            template = read_template(found.raw)
            return await run_slow_start_batch(plan.create, lambda _: self._making.create(template, metadata))
        if plan.delete:
            return await run_concurrently([self._making.delete(pod, metadata) for pod in plan.delete])
        return None

    def _list_related(self, replica_set: ReplicaSet, pods: Sequence[Pod]) -> Sequence[Pod]:
        """The pods of all sets with the same owner, this one's among them. Only asked for where some have to go."""
        if len(pods) <= get_desired_replicas(replica_set):
            return pods
        owner = find_controller(replica_set.metadata)
        siblings = [replica_set] if owner is None else [raw.view for raw in list_managed_by(self._sets, owner.uid)]
        return [pod for sibling in siblings for pod in list_managed_by(self._pods, sibling.metadata.uid)]

    async def _update_status(self, replica_set: ReplicaSet, pods: Sequence[Pod], error: PlimsollError | None) -> bool:
        """Write the status; whether that was not needed."""
        failure = None if error is None else Failure(message=str(error))
        status = compute_replica_set_status(replica_set, pods, self._clock.now(), failure=failure)
        if status == replica_set.status:
            return True
        metadata = replica_set.metadata
        # No other program writes this status, so it need not wait for writers of other fields: the uid is enough.
        body = {"metadata": {"uid": metadata.uid}, "status": _encode_status(status, replica_set.status)}
        with suppress(NotFound):  # it may have been deleted meanwhile
            await self._client.merge_patch(
                ReplicaSet, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )
        return False

    # ---- which sets a pod's change concerns

    def _on_pod_change(self, change: Change[Pod]) -> None:
        """A change that may need other pods is handled at once; a change of the status alone is batched."""
        keys = self._list_sets(change)
        if not is_more_than_status(change):
            delays_s = {key: self._compute_batch_s(key) for key in keys}
        elif self._may_need_others(change):
            delays_s = dict.fromkeys(keys, 0.0)
        else:
            delays_s = {key: self._compute_settling_s(key) for key in keys}
        for key, delay_s in delays_s.items():
            self.controller.queue.add_after(key, delay_s)

    def _may_need_others(self, change: Change[Pod]) -> bool:
        # A pod that goes without grace shows its mark only when it is gone: its successor waits as well.
        did_not_count = isinstance(change, Deleted) and not is_active(change.last)
        owners = [find_controller(pod.metadata) for pod in list_states(change)]
        is_own_write = all(
            owner is not None and self._own_writes.is_awaiting(owner.uid, change.key) for owner in owners
        )
        return not (did_not_count or is_own_write)

    def _compute_batch_s(self, key: Key) -> float:
        """How long news of pods' readiness wait for more of them."""
        return max(STATUS_DELAY_S, self._compute_settling_s(key))

    def _compute_settling_s(self, key: Key) -> float:
        """How long what we did ourselves waits to be seen as a whole: a few pods are seen at once."""
        found = self._sets.cache.get(key.name, key.namespace)
        size = 0 if found is None else get_desired_replicas(found.view)
        by_size_s = min(size * _DELAY_BY_POD_S, _LONGEST_DELAY_S) if size > _FEW else 0.0
        return max(self._patience_s, by_size_s)

    def _list_sets(self, change: Change[Any]) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        for pod in list_states(change):
            owner = find_controller(pod.metadata)
            if owner is None:
                keys.update(dict.fromkeys(self._list_matching(pod.metadata.namespace, pod.metadata.labels)))
            elif owner.kind == self._resource.kind and owner.api_version == self._resource.api_version:
                keys[Key(pod.metadata.namespace, owner.name)] = None
        return keys

    def _list_matching(self, namespace: str, labels: dict[str, str]) -> Iterable[Key]:
        """Sets that might take an orphan over."""
        for raw in self._sets.cache.list(namespace):
            selector: LabelSelector = parse_label_selector(raw.view.spec.selector)
            if selector.matches(labels):
                yield get_key(raw)


def _encode_status(status: ReplicaSetStatus, before: ReplicaSetStatus) -> dict[str, Any]:
    counts = {
        "fullyLabeledReplicas": status.fully_labeled_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
    }
    body = {"replicas": status.replicas, **count_fields(counts)}
    if status.conditions != before.conditions:
        body["conditions"] = [encode_condition(condition) for condition in status.conditions] or None
    return body
