"""Which controllers pods name as theirs, kept while pods come and go: `PodOwnerIndex`.

A controller that a pod names and that no cache holds is gone, and the pod will not be recreated (docs/design/nodes.md
6.7). Thousands of pods name the same few controllers, so those are counted, and only pods that changed are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.nodes.planning.scaledown.drainability import ControllerKey
    from plimsoll.objects.api.pods import Pod

    Named = tuple[ControllerKey, str]
    """A controller and the uid it is named with."""


class PodOwnerIndex:
    """Finds the controllers of the pods in a cache; controllers of other kinds are left out."""

    def __init__(self, cache: Cache[Pod], kinds: Collection[str]) -> None:
        self._cache = cache
        self._trail = cache.track_changes()
        self._kinds = frozenset(kinds)
        self._named_by: dict[KeyTuple, list[Named]] = {}
        self._pods: dict[Named, int] = {}
        self._alone: dict[Named, list[Named]] = {}
        """Nearly every pod names one, which thousands do: they share one list."""

    def list_owners(self) -> Collection[Named]:
        """Each once."""
        changed = self._trail.changed
        if changed is None:
            self._named_by, self._pods, self._alone = {}, {}, {}
            for pod in self._cache.list():
                self._put((pod.metadata.namespace, pod.metadata.name), pod)
        else:
            for place in changed:
                namespace, name = place
                self._put(place, self._cache.get(name, namespace))
        self._trail.clear()
        return self._pods.keys()

    def _put(self, place: KeyTuple, pod: Pod | None) -> None:
        for owner in self._named_by.pop(place, ()):
            self._pods[owner] -= 1
            if not self._pods[owner]:
                del self._pods[owner]
                self._alone.pop(owner, None)
        named = [] if pod is None else self._read(pod)
        for owner in named:
            self._pods[owner] = self._pods.get(owner, 0) + 1
        if named:
            self._named_by[place] = self._alone.setdefault(named[0], named) if len(named) == 1 else named

    def _read(self, pod: Pod) -> list[Named]:
        namespace = pod.metadata.namespace
        return [
            ((namespace, owner.kind, owner.name), owner.uid)
            for owner in pod.metadata.owner_references
            if owner.controller and owner.kind in self._kinds
        ]
