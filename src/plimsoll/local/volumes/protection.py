"""The protection controllers: keep claims while pods use them, and volumes while they are bound.

The API server adds the finalizers; the controllers remove them when nothing is in the way any more, and add them to
objects that lack them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.controller.finalizers import Finalizer
from plimsoll.kube.informer.events import Added, Key, get_key
from plimsoll.kube.requests.options import Selection
from plimsoll.local.volumes.annotations import CLAIM_PROTECTION, VOLUME_PROTECTION
from plimsoll.local.volumes.pods_by_claim import index_pods_by_claim, list_claims, list_pods_using
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component

CLAIMS_NAME: Final = "persistentvolumeclaim-protection-controller"
VOLUMES_NAME: Final = "persistentvolume-protection-controller"


class ClaimProtectionController:
    """A claim is used by every pod that names it and has a node, until the pod object is gone."""

    def __init__(self, component: Component) -> None:
        self._claims = component.informers.get_informer(PersistentVolumeClaim)
        self._pods = component.informers.get_informer(Pod)
        index_pods_by_claim(self._pods)
        self._client = component.client
        self._finalizer = Finalizer(component.client, CLAIM_PROTECTION)
        self.controller: Controller[Key] = Controller(
            CLAIMS_NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(claim) for claim in self._claims.cache],
        )
        enqueue_on(self._claims, self.controller, get_own_key)
        enqueue_on(self._pods, self.controller, self._list_released_claims)

    async def reconcile(self, key: Key) -> Done:
        claim = self._claims.cache.get(key.name, key.namespace)
        if claim is None:
            return Done()
        if claim.metadata.deletion_timestamp is None:
            await self._finalizer.add(PersistentVolumeClaim, claim.metadata)
            return Done()
        if not self._finalizer.is_set(claim.metadata):
            return Done()
        user = next((pod for pod in list_pods_using(self._pods, key) if pod.spec.node_name), None)
        if user is not None:
            return Done(summary=f"kept: pod {user.metadata.name} uses it")
        if pod := await self._find_user_on_server(key):
            return Done(summary=f"kept: pod {pod} uses it")
        await self._finalizer.remove(PersistentVolumeClaim, claim.metadata)
        return Done(summary="let go")

    async def _find_user_on_server(self, key: Key) -> str:
        """Data may be lost for good: a cache that may lag must not decide that it is unused."""
        listed = await self._client.list(Pod, Selection(namespace=key.namespace))
        users = (pod for pod in listed.items if key in list_claims(pod) and pod.spec.node_name)
        return next((pod.metadata.name for pod in users), "")

    def _list_released_claims(self, change: Change[Any]) -> Iterable[Key]:
        """Claims of pods that went, or might have."""
        if isinstance(change, Added):
            return ()
        keys = [key for pod in list_states(change) if isinstance(pod, Pod) for key in list_claims(pod)]
        return [key for key in dict.fromkeys(keys) if self._is_leaving(key)]

    def _is_leaving(self, key: Key) -> bool:
        claim = self._claims.cache.get(key.name, key.namespace)
        return claim is not None and claim.metadata.deletion_timestamp is not None


class VolumeProtectionController:
    """A volume is used as long as its phase is Bound."""

    def __init__(self, component: Component) -> None:
        self._volumes = component.informers.get_informer(PersistentVolume)
        self._finalizer = Finalizer(component.client, VOLUME_PROTECTION)
        self.controller: Controller[Key] = Controller(
            VOLUMES_NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(volume) for volume in self._volumes.cache],
        )
        enqueue_on(self._volumes, self.controller, get_own_key)

    async def reconcile(self, key: Key) -> Done:
        volume = self._volumes.cache.get(key.name)
        if volume is None:
            return Done()
        if volume.metadata.deletion_timestamp is None:
            await self._finalizer.add(PersistentVolume, volume.metadata)
        elif self._finalizer.is_set(volume.metadata) and volume.status.phase != "Bound":
            await self._finalizer.remove(PersistentVolume, volume.metadata)
            return Done(summary="let go")
        return Done()
