"""The ephemeral volume controller: creates the claims that belong to one pod and are deleted with it.

A claim is named `<pod>-<volume>`, so that it is created once. A claim of that name that the pod does not own is left
alone: the pod waits, and an Event gives the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, list_states
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.volumes.pods_by_claim import index_pods_by_claim, list_pods_using
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import PersistentVolumeClaim
from plimsoll.scheduling.storage import is_owned_by_pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component

NAME: Final = "ephemeral_volume"


class EphemeralVolumeController:
    """Reconciles through `controller`, whose keys are pods."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._recorder = component.recorder
        self._pods = component.informers.get_informer(Pod)
        self._claims = component.informers.get_informer(PersistentVolumeClaim)
        index_pods_by_claim(self._pods)
        self.controller: Controller[Key] = Controller(
            "ephemeral-volume-controller",
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(pod) for pod in self._pods.cache if _needs_claims(pod)],
        )
        enqueue_on(self._pods, self.controller, _list_key_if_claims_needed)
        enqueue_on(self._claims, self.controller, self._list_pods_of_lost_claim)

    async def reconcile(self, key: Key) -> Done:
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None or not _needs_claims(pod):
            return Done()
        missing = [name for name in _list_claim_names(pod) if not self._is_there(pod, name)]
        if not missing:
            return Done()
        try:
            whole = await self._client.get_with_raw(Pod, key.name, namespace=key.namespace)
        except NotFound:
            return Done()
        if whole.view.metadata.uid != pod.metadata.uid:
            return Done()
        for body in build_claim_bodies(msgspec.json.decode(whole.raw)):
            if body["metadata"]["name"] in missing:
                await self._make(pod, body)
        return Done(summary=f"made {', '.join(missing)}")

    async def _make(self, pod: Pod, body: Mapping[str, Any]) -> None:
        try:
            await self._client.create(PersistentVolumeClaim, body, namespace=pod.metadata.namespace)
        except AlreadyExists:
            # Ours, which the cache will show, or that of another owner, which is reported when the cache shows it.
            return

    def _is_there(self, pod: Pod, name: str) -> bool:
        claim = self._claims.cache.get(name, pod.metadata.namespace)
        if claim is None:
            return False
        if not is_owned_by_pod(claim, pod):
            where = pod.metadata.namespace
            why = f"PVC {where}/{name} was not created for pod {where}/{pod.metadata.name} (pod is not owner)"
            about = build_reference(self._client.calls.get_resource(Pod), pod)
            self._recorder.record(about, EventType.WARNING, reason="EphemeralVolumeCreationFailed", message=why)
        return True

    def _list_pods_of_lost_claim(self, change: Change[Any]) -> Iterable[Key]:
        if self._claims.cache.get(change.key.name, change.key.namespace) is not None:
            return ()
        return [get_key(pod) for pod in list_pods_using(self._pods, change.key) if _needs_claims(pod)]


def build_claim_bodies(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims of a pod, as its own volumes describe them. `pod` is the whole object as the server wrote it."""
    meta = pod["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    bodies: list[dict[str, Any]] = []
    for volume in pod["spec"].get("volumes", ()):
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is None:
            continue
        given = template.get("metadata") or {}
        kept = {name: given[name] for name in ("labels", "annotations") if given.get(name)}
        metadata = {**kept, "name": f"{meta['name']}-{volume['name']}", "ownerReferences": [owner]}
        bodies.append({"metadata": metadata, "spec": template["spec"]})
    return bodies


def _list_claim_names(pod: Pod) -> list[str]:
    return [f"{pod.metadata.name}-{volume.name}" for volume in pod.spec.volumes if volume.ephemeral is not None]


def _needs_claims(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and any(volume.ephemeral is not None for volume in pod.spec.volumes)


def _list_key_if_claims_needed(change: Change[Any]) -> Iterable[Key]:
    wanting = any(isinstance(wire_object, Pod) and _needs_claims(wire_object) for wire_object in list_states(change))
    return (change.key,) if wanting else ()
