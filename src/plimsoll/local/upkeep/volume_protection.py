"""Claims and volumes in use outlive their deletion: their protection finalizers go when nobody uses them any more.

The API server puts the finalizers on. A claim is in use by pods that have a node and have not finished, a volume by the
claim it is bound to.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controllers import Controller, Done
from plimsoll.kube.finalizers import Finalizer
from plimsoll.kube.informer.changes import Key, key_of
from plimsoll.kube.wiring import enqueue_on, of_itself, states_in
from plimsoll.local.upkeep.pod_notices import is_finished
from plimsoll.objects.pods import Pod
from plimsoll.objects.volumes import PersistentVolume, PersistentVolumeClaim
from plimsoll.scheduling.storage import claim_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.changes import Change
    from plimsoll.local.components import Component

CLAIMS: Final = "pvc-protection-controller"
VOLUMES: Final = "pv-protection-controller"

_BY_CLAIM: Final = "upkeep: pods by claim"


class ClaimProtection:
    """`controller` is what runs."""

    def __init__(self, component: Component) -> None:
        self._finalizer = Finalizer(component.client, "kubernetes.io/pvc-protection")
        self._claims = component.informers.of(PersistentVolumeClaim)
        self._pods = component.informers.of(Pod)
        with suppress(InvalidInput):
            self._pods.add_index(_BY_CLAIM, _claims_of)
        self.controller: Controller[Key] = Controller(
            CLAIMS,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [key_of(one) for one in self._claims.cache],
        )
        enqueue_on(self._claims, self.controller, of_itself)
        enqueue_on(self._pods, self.controller, self._used_by)

    async def reconcile(self, key: Key) -> Done:
        claim = self._claims.cache.get(key.name, key.namespace)
        if claim is None or claim.metadata.deletion_timestamp is None or not self._finalizer.is_on(claim.metadata):
            return Done()
        users = self._pods.cache.by_index(_BY_CLAIM, key)
        if any(pod.spec.node_name and not is_finished(pod) for pod in users):
            return Done()
        await self._finalizer.remove(PersistentVolumeClaim, claim.metadata)
        return Done()

    def _used_by(self, change: Change[Pod]) -> Iterable[Key]:
        states: list[Any] = states_in(change)
        return dict.fromkeys(key for pod in states for key in _claims_of(pod))


class VolumeProtection:
    """`controller` is what runs."""

    def __init__(self, component: Component) -> None:
        self._finalizer = Finalizer(component.client, "kubernetes.io/pv-protection")
        self._volumes = component.informers.of(PersistentVolume)
        self.controller: Controller[Key] = Controller(
            VOLUMES,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [key_of(one) for one in self._volumes.cache],
        )
        enqueue_on(self._volumes, self.controller, of_itself)

    async def reconcile(self, key: Key) -> Done:
        volume = self._volumes.cache.get(key.name)
        if volume is None or volume.metadata.deletion_timestamp is None or volume.status.phase == "Bound":
            return Done()
        await self._finalizer.remove(PersistentVolume, volume.metadata)
        return Done()


def _claims_of(pod: Pod) -> list[Key]:
    return [Key(pod.metadata.namespace, name) for name in claim_names(pod)]
