"""The pod-set controller: makes the pods that StrimziPodSets list, deletes all others of theirs, and counts them.

One reconcile: read the set and its pods, adopt orphans, create, delete, write the status. While earlier writes are
missing in the cache, nothing is created or deleted. Nothing is deleted because something could not be read: a set that
cannot be decoded, a list with a wrong entry, a set that has changed since it was read. Pods are not rolled here: a pod
with another revision than the listed one is only counted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from plimsoll.core.plans import Reason
from plimsoll.core.selectors import LabelSelector
from plimsoll.kafka.controllers.pod_set_plan import (
    PodSetPlan,
    build_conditions,
    compute_pod_set_status,
    plan_pod_set,
)
from plimsoll.kafka.wire.listed_pods import INVALID_POD_SET, ListedPods, read_listed_pods, read_selector
from plimsoll.kube.conditions import list_conditions, to_json
from plimsoll.kube.controlled_objects.controller_refs import (
    ControllerRefManager,
    index_by_controller,
    list_candidates,
)
from plimsoll.kube.controlled_objects.pod_control import BURST, PodControl, build_pod, run_concurrently
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.errors import Conflict, NotAllowed, NotFound, UnreadableAnswer
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.undecoded_objects import patch_undecoded_status, read_undecoded
from plimsoll.objects.api.kafka import StrimziPodSet, StrimziPodSetStatus
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.owners import find_controller
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.core.errors import PlimsollError
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.objects.codec.decoding import RawObject

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAME: Final = "strimzi-pod-set-controller"
_WORKERS: Final = 5
_LOOK_AGAIN_S: Final = 1.0
"""When a set that has changed since it was read is looked at again."""
_CONFLICT_RECHECK_S: Final = 30.0
"""How soon a pod of another owner that has a listed name is looked for again."""


class PodSetController:
    """Reconciles through `controller`, which the supervisor runs. Made before the informers run.

    `namespace`: only pod sets of this namespace; empty: of all.
    """

    def __init__(
        self,
        client: Client,
        informers: SharedInformerFactory,
        recorder: EventRecorder,
        *,
        clock: Clock,
        entropy: Entropy,
        namespace: str = "",
    ) -> None:
        selection = Selection(namespace=namespace)
        self._client = client
        self._clock = clock
        self._resource = client.calls.get_resource(StrimziPodSet)
        self._sets = informers.get_raw_informer(StrimziPodSet, selection)
        self._pods = informers.get_informer(Pod, selection)
        index_by_controller(self._pods)
        self._own_writes = Expectations(self._pods, clock=clock)
        self._pod_control = PodControl(client, recorder, self._resource, self._own_writes)
        self._adoption = ControllerRefManager(client, Pod, self._resource)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=clock,
            entropy=entropy,
            all_keys=self._list_keys,
            settings=ControllerSettings(workers=_WORKERS),
        )
        enqueue_on(self._sets, self.controller, get_own_key)
        enqueue_on(self._pods, self.controller, self._find_sets)

    def list_services(self) -> list[Service]:
        return [Service(name=self.controller.name, run=self.controller.run)]

    async def reconcile(self, key: Key) -> Done | Again:
        found = self._sets.cache.get(key.name, key.namespace)
        if found is None:
            bad = self._sets.cache.bad.get(key)
            if bad is not None:
                await self._report_unreadable(key, bad.problem)
            return Done()
        pod_set = found.view
        metadata = pod_set.metadata
        if metadata.deletion_timestamp is not None:
            return Done(summary="it is being deleted, and its pods go with it")
        if not self._own_writes.are_fulfilled(metadata.uid):
            return Again(after_s=RECHECK_S)
        listed = read_listed_pods(pod_set, lists_pods=_lists_pods(found))
        ours = await self._claim(pod_set, listed)
        plan = self._plan(metadata.namespace, listed, ours)

        error = await self._make(found, plan)
        removed = error is None and await self._remove(found, plan)
        problems = plan.problems
        if isinstance(error, NotAllowed):
            raise error
        if error is not None and not isinstance(error, Conflict):
            problems = (*problems, Reason(code=type(error).__name__, message=str(error)))
        await self._write_status(
            pod_set, compute_pod_set_status(pod_set, listed, ours, problems=problems, now=self._clock.now())
        )
        if error is not None:
            raise error
        if not removed:
            return Again(after_s=_LOOK_AGAIN_S)
        # Changes of pods that are not the set's do not wake it.
        return Again(after_s=_CONFLICT_RECHECK_S) if plan.problems else Done()

    def _list_keys(self) -> Iterable[Key]:
        cache = self._sets.cache
        return [*(get_key(raw) for raw in cache), *(Key(*key) for key in cache.bad)]

    # ---- pods

    async def _claim(self, pod_set: StrimziPodSet, listed: ListedPods) -> list[Pod]:
        """The set's pods, after adopting matching orphans. A listed pod is not let go, whatever its labels are."""
        metadata = pod_set.metadata
        selector = read_selector(pod_set)
        ours: list[Pod] = []
        uncertain: list[Pod] = []
        for pod in list_candidates(self._pods, metadata):
            owner = find_controller(pod.metadata)
            is_listed = pod.metadata.name in listed.pods
            is_kept = owner is not None and (is_listed or bool(listed.problems))
            (ours if is_kept else uncertain).append(pod)
        if isinstance(selector, LabelSelector):
            ours += await self._adoption.claim(metadata, selector, uncertain)
        return ours

    def _plan(self, namespace: str, listed: ListedPods, ours: list[Pod]) -> PodSetPlan:
        cache = self._pods.cache
        return plan_pod_set(
            listed,
            ours,
            others={name for name in listed.pods if cache.get(name, namespace) is not None},
            unreadable={name for name in listed.pods if Key(namespace, name) in cache.bad},
        )

    async def _make(self, found: RawObject[StrimziPodSet], plan: PodSetPlan) -> PlimsollError | None:
        """Create what is missing and delete what ended. A pod that the server refuses does not hold up the others."""
        metadata = found.view.metadata
        bodies = [build_pod(entry.body, self._resource, metadata, name=entry.name) for entry in plan.create[:BURST]]
        acts: list[Awaitable[PlimsollError | None]] = [
            *(self._pod_control.create_as(body, metadata) for body in bodies),
            *(self._pod_control.delete(pod, metadata) for pod in plan.restart),
        ]
        return await run_concurrently(acts) if acts else None

    async def _remove(self, found: RawObject[StrimziPodSet], plan: PodSetPlan) -> bool:
        """Delete the pods that are not listed, if the server's set is the one that was read. Whether that was so."""
        if not plan.remove:
            return True
        metadata = found.view.metadata
        try:
            live = await self._client.get(StrimziPodSet, metadata.name, namespace=metadata.namespace)
        except (NotFound, UnreadableAnswer):
            return False
        if (live.metadata.uid, live.metadata.generation) != (metadata.uid, metadata.generation):
            return False
        if live.metadata.deletion_timestamp is not None:
            return False
        error = await run_concurrently([self._pod_control.delete(pod, metadata) for pod in plan.remove])
        if error is not None:
            raise error
        return True

    # ---- status

    async def _write_status(self, pod_set: StrimziPodSet, status: StrimziPodSetStatus) -> None:
        if status == pod_set.status:
            return
        metadata = pod_set.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": _encode_status(status)}
        with suppress(NotFound):  # it may have been deleted meanwhile
            await self._client.merge_patch(
                StrimziPodSet, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )

    async def _report_unreadable(self, key: Key, problem: str) -> None:
        """A condition on a set that cannot be decoded. Its counts and its pods stay as they are."""
        log.warning(
            "object.unreadable", kind=self._resource.kind, namespace=key.namespace, name=key.name, problem=problem
        )
        reason = Reason(code=INVALID_POD_SET, message=f"the pod set cannot be decoded: {problem}")
        (condition,) = build_conditions((reason,), (), now=self._clock.now())
        found = await read_undecoded(self._client, StrimziPodSet, key.name, namespace=key.namespace)
        if found is None or _has_condition(found.status, condition.message):
            return
        await patch_undecoded_status(self._client, StrimziPodSet, found.metadata, {"conditions": [to_json(condition)]})

    # ---- which sets a pod's change concerns

    def _find_sets(self, change: Change[Any]) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        for view in list_states(change):
            metadata = view.metadata
            owner = find_controller(metadata)
            if owner is None:
                keys.update(dict.fromkeys(self._find_adopting_sets(metadata.namespace, metadata.labels)))
            elif owner.kind == self._resource.kind:
                keys[Key(metadata.namespace, owner.name)] = None
        return keys

    def _find_adopting_sets(self, namespace: str, labels: dict[str, str]) -> Iterable[Key]:
        for raw in self._sets.cache.list(namespace):
            selector = read_selector(raw.view)
            if isinstance(selector, LabelSelector) and selector.matches(labels):
                yield get_key(raw)


def _lists_pods(found: RawObject[StrimziPodSet]) -> bool:
    """Whether `spec.pods` is written: an empty list removes all pods, a missing one removes none."""
    if found.view.spec.pods:
        return True
    spec = msgspec.json.decode(found.raw).get("spec")
    return isinstance(spec, dict) and isinstance(spec.get("pods"), list)


def _has_condition(status: Mapping[str, Any], message: str) -> bool:
    return any(condition.get("message") == message for condition in list_conditions(status.get("conditions")))


def _encode_status(status: StrimziPodSetStatus) -> dict[str, Any]:
    return {
        "observedGeneration": status.observed_generation,
        "pods": status.pods,
        "readyPods": status.ready_pods,
        "currentPods": status.current_pods,
        "conditions": [to_json(condition) for condition in status.conditions] or None,
    }
